"""Random allowed parameters of every limit: a small fixed sample of them, and fresh ones of all limits (slow)."""

import dataclasses
import json
import secrets

import pytest

import deeplimits as dl
from conftest import each_limit
from deeplimits import cli
from deeplimits.lab import campaign
from deeplimits.lab.workers import Workers
from deeplimits.render import campaign_page

SAMPLE = (
    "equator-initialization",
    "ridgeless-double-descent",
    "marchenko-pastur-law",
    "deep-linear-norm",
    "homogeneous-network-margin",
    "xor-success-probability",
    "relu-linearization-bound",
    "stieltjes-transform-and-inversion",
    "classical-ode-limit",
    "free-additive-convolution",
    "nadaraya-watson-singular-kernel",
    "population-loss-teacher-student",
)
"""Limits that are compared in a second or so."""


def test_a_small_campaign_finds_no_fault():
    cases = [campaign.draw(dl.catalogue.entry(name), seed=410, number=1) for name in SAMPLE]
    assert cases == [campaign.draw(dl.catalogue.entry(name), 410, 1) for name in SAMPLE]
    with Workers(1, time_limit=campaign.TIME_LIMIT) as workers:
        rows = list(campaign.run(cases, workers))
    assert campaign.complaints(rows) == []
    assert sum(row.rejected for row in rows) >= 0.95 * sum(row.planted for row in rows) > 0
    assert sum(row.outcome == "agrees" for row in rows) >= 8
    heading, lines = campaign.table(rows)
    assert {len(line) for line in lines} == {len(heading)}


@pytest.mark.slow
@each_limit
def test_a_fresh_draw_is_no_fault(name):
    seed = secrets.randbelow(10**6)
    case = campaign.draw(dl.catalogue.entry(name), seed, 0)
    with Workers(1, time_limit=campaign.TIME_LIMIT) as workers:
        (row,) = campaign.run([case], workers)
    assert campaign.complaints([row]) == [], f"deeplimits campaign --draws 1 --seed {seed}"


def row(outcome="agrees", number=0, **fields):
    case = campaign.Case("marchenko-pastur-law", {"gamma": 0.3}, number, f"7/{number}")
    return campaign.Row(case, "spectra", outcome, "a sentence | with a bar", **fields)


def test_complaints_are_faults_and_shares_beyond_chance():
    assert campaign.complaints([row(planted=3, rejected=3), row("refused"), row("undecided")]) == []
    (fault,) = campaign.complaints([row("disagrees")])
    assert fault.startswith("disagrees: marchenko-pastur-law")
    (share,) = campaign.complaints([row("undecided")] * 20 + [row()] * 80)
    assert "20 of 100 draws are undecided" in share
    (missed,) = campaign.complaints([row(planted=2, rejected=1)] * 20)
    assert "20 of 40 theories wrong by 30%" in missed


def test_a_campaign_goes_on_where_it_was(tmp_path, capsys, monkeypatch):
    asked = []

    def run(cases, workers):
        asked.append(len(cases))
        return [campaign.Row(case, "spectra", "agrees", "well", 0.01, 2, 2, 0.5) for case in cases]

    monkeypatch.setattr(campaign, "run", run)
    out, page = tmp_path / "found.jsonl", tmp_path / "page.md"
    arguments = ["campaign", "--only", "marchenko-pastur-law", "--seed", "3", "--out", str(out), "--workers", "1"]
    assert cli.main([*arguments, "--draws", "2"]) == 0
    assert cli.main([*arguments, "--draws", "3", "--page", str(page)]) == 0
    assert asked == [2, 1]
    rows = [campaign.Row.from_json(json.loads(line)) for line in out.read_text().splitlines()]
    assert [found.case.drawn for found in rows] == ["3/0", "3/1", "3/2"]
    assert rows[0] == dataclasses.replace(rows[0], seconds=0.5)
    assert "3 draws, from the seeds 3" in page.read_text()
    assert "seed 3" in capsys.readouterr().out


def test_the_page_of_a_campaign_tells_every_row_that_did_not_agree():
    rows = [row(), row("refused", 1), row("undecided", 2), row("time-out", 3)]
    page = campaign_page.page(rows, campaign.table(rows), campaign.shares())
    assert "4 draws, from the seeds 7." in page
    assert "| `marchenko-pastur-law` | 7/2 | a sentence \\| with a bar |" in page
    assert "| `marchenko-pastur-law` | time-out | 7/3 |" in page
