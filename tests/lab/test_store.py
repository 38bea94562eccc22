"""The file of a sweep: what is put in comes out, or a sentence does."""

import json
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.lab import store as stores
from deeplimits.lab.outcomes import Outcome
from deeplimits.lab.salvage import salvage
from deeplimits.lab.store import Store, StoreError, driven

NUMBERS = Outcome({"risk": np.array([[0.1, np.nan, -0.0]]), "good": np.array([True])}, (np.arange(3.0),), seconds=1.5)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sweep.db"


def filled(path, count=3):
    with Store(path) as store:
        store.put({f"key{i}": ({"size": i}, NUMBERS) for i in range(count)})
        store.put({"bad": ({"size": 9}, Outcome(sentence="it diverged", attempts=2))})
        store.plan({"limit": "knn-bias-variance", "varying": {"noise": [1, 2]}}, 7)
    return path


def same(left, right):
    assert list(left.measured) == list(right.measured)
    for name in left.measured:
        assert left.measured[name].dtype == right.measured[name].dtype
        assert left.measured[name].tobytes() == right.measured[name].tobytes()
        assert left.measured[name].shape == right.measured[name].shape
    assert [one.tolist() for one in left.stated] == [one.tolist() for one in right.stated]
    return True


def test_what_is_put_in_comes_out(path):
    with Store(filled(path)) as store:
        assert same(store.get("key1"), NUMBERS)
        assert store.get("bad").sentence == "it diverged"
        assert store.get("none") is None
        assert store.keys() == {"key0", "key1", "key2"}
        store.put({"bad": ({}, NUMBERS)})
        assert len(store) == 4
        assert store.plans() == [{"limit": "knn-bias-variance", "varying": {"noise": [1, 2]}}]
        with Store(path, reading=True) as reader:
            assert (reader.status().done, reader.status().tasks, reader.status().driven) == (4, 7, True)
    with Store(path, reading=True) as reader:
        assert not reader.status().driven
        assert "4 results of 7 tasks" in str(reader.status())


def test_a_second_driver_is_refused(path):
    with Store(path), pytest.raises(StoreError, match="another sweep is writing"):
        stores.locked(path, 0.0)
    assert not driven(path)
    Store(path).close()


def test_the_lock_of_a_driver_that_was_killed_is_free(path):
    code = f"from deeplimits.lab.store import Store; s = Store({str(path)!r}); print(1, flush=True); input()"
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    other.stdout.readline()
    assert driven(path)
    other.kill()
    other.communicate()
    Store(path).close()


def damaged(path, statement, *values):
    with sqlite3.connect(path) as file:
        file.execute(statement, values)
    file.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE arrays SET data = zeroblob(length(data)) WHERE key = 'key1'",
        "UPDATE arrays SET dtype = 'O' WHERE key = 'key1'",
        "UPDATE arrays SET shape = '[1e9]' WHERE key = 'key1'",
        "UPDATE arrays SET shape = '[[[[' WHERE key = 'key1'",
        "UPDATE arrays SET data = 'text' WHERE key = 'key1'",
        "UPDATE arrays SET data = data || x'00' WHERE key = 'key1'",
        "DELETE FROM arrays WHERE key = 'key1' AND part = 'stated'",
        "UPDATE results SET digest = 5 WHERE key = 'key1'",
        "UPDATE results SET sentence = 'so' WHERE key = 'key1'",
    ],
)
def test_a_result_that_is_not_what_was_written_is_not_there(path, statement):
    damaged(filled(path), statement)
    with Store(path) as store:
        assert store.get("key1") is None
        assert same(store.get("key2"), NUMBERS)


def test_a_newer_file_is_left_as_it_is(path):
    damaged(filled(path), "PRAGMA user_version = 99")
    before = path.read_bytes()
    for reading in (False, True):
        with pytest.raises(StoreError, match="newer deeplimits"):
            Store(path, reading=reading)
    assert path.read_bytes() == before


def test_an_older_file_is_brought_up_to_date(path, monkeypatch):
    filled(path)
    monkeypatch.setattr(stores, "VERSION", 3)
    steps = {1: ("ALTER TABLE plans ADD COLUMN note TEXT",), 2: ("CREATE INDEX by_outcome ON results (outcome)",)}
    monkeypatch.setattr(stores, "MIGRATIONS", steps)
    with pytest.raises(StoreError, match="older form 1"):
        Store(path, reading=True)
    with Store(path) as store:
        assert store._file.execute("PRAGMA user_version").fetchone()[0] == 3
        assert same(store.get("key1"), NUMBERS)
    monkeypatch.setattr(stores, "VERSION", 4)
    monkeypatch.setattr(stores, "MIGRATIONS", {3: ("CREATE TABLE one (x)", "this is no SQL")})
    with pytest.raises(StoreError, match="damaged"):
        Store(path)
    monkeypatch.setattr(stores, "VERSION", 3)
    with Store(path) as store:  # a migration that fails half way has not begun
        assert store._file.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'one'").fetchone()[0] == 0


@pytest.mark.parametrize("what", [b"", b"no database at all", b"SQLite format 3\x00" + bytes(200), bytes(5000)])
def test_a_file_that_is_something_else(path, what):
    path.write_bytes(what)
    if what:
        with pytest.raises(StoreError, match=r"is damaged .*salvage|another program"):
            Store(path)
        assert path.read_bytes() == what
    else:
        Store(path).close()


def test_a_scheme_that_is_no_text(path):
    """What SQLite says of it quotes it, and is no text either."""
    data = bytearray(filled(path).read_bytes())
    place = data.index(b"CREATE TABLE results") + 8
    data[place] = 0x80
    path.write_bytes(bytes(data))
    for reading in (True, False):
        with pytest.raises(StoreError, match=r"is damaged .*salvage"):
            Store(path, reading=reading)
    with pytest.raises(StoreError, match="is left as it is"):
        salvage(path)


def test_a_database_of_another_program_and_one_with_a_trigger(path, tmp_path):
    damaged(path, "CREATE TABLE mine (x)")
    with pytest.raises(StoreError, match="another program"):
        Store(path)
    other = filled(tmp_path / "other.db")
    damaged(other, "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM arrays; END")
    with pytest.raises(StoreError, match="tables of a store"):
        Store(other)


def test_places_where_there_can_be_no_file(tmp_path):
    for place, words in ((tmp_path, "is a folder"), (tmp_path / "no" / "sweep.db", "there is no folder")):
        with pytest.raises(ParameterError, match=words):
            Store(place)
    with pytest.raises(ParameterError, match="no such file"):
        Store(tmp_path / "none.db", reading=True)
    with pytest.raises(ParameterError, match="no such file"):
        salvage(tmp_path / "none.db")


def test_a_full_disk_loses_nothing(path):
    with Store(filled(path)) as store:
        pages = store._file.execute("PRAGMA page_count").fetchone()[0]
        store._file.execute(f"PRAGMA max_page_count = {pages + 2}")
        large = Outcome({"risk": np.zeros(100_000)})
        with pytest.raises(StoreError, match=r"no room left .* make room and run the same again"):
            store.put({"large": ({}, large), "small": ({}, NUMBERS)})
        store._file.execute("PRAGMA max_page_count = 1000000")
        assert store.keys() == {"key0", "key1", "key2"}
        store.put({"large": ({}, large)})
        assert same(store.get("large"), large)


def test_what_can_be_read_of_a_damaged_file_is_kept(path):
    big = {f"key{i}": ({"size": i}, Outcome({"risk": np.arange(300.0) + i})) for i in range(300)}
    with Store(path) as store:
        store.put(big)
        store.plan({"limit": "x"}, 300)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 8192] = bytes(8192)
    path.write_bytes(bytes(data))
    count, aside = salvage(path)
    assert aside.exists()
    assert 150 < count < 300
    with Store(path) as store:
        have = store.keys()
        assert len(have) == count
        kept = [key for key in big if key in have]
        assert all(same(store.get(key), big[key][1]) for key in kept)
        assert store.plans() == [{"limit": "x"}]


@pytest.mark.parametrize("kind", ["text", "another program", "newer"])
def test_what_is_no_damaged_store_is_not_salvaged(path, kind):
    if kind == "text":
        path.write_text("my notes")
    elif kind == "another program":
        damaged(path, "CREATE TABLE results (mine)")
        damaged(path, "INSERT INTO results VALUES (1)")
    else:
        damaged(filled(path), f"PRAGMA user_version = {stores.VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is left as it is"):
        salvage(path)
    assert path.read_bytes() == before
    assert {one.name for one in path.parent.iterdir()} <= {path.name, f"{path.name}-lock"}


def test_nothing_of_a_file_is_obeyed(path):
    """No terminal codes from sentences, no plan that is not a dictionary, no numbers of unknown types."""
    filled(path)
    damaged(path, "UPDATE results SET sentence = ? WHERE key = 'bad'", "red\x1b[31m alert")
    damaged(path, "INSERT INTO plans (document, tasks) VALUES (?, 1)", json.dumps([1, 2]))
    damaged(path, "INSERT INTO plans (document, tasks) VALUES (?, 1)", "[" * 100_000)
    with Store(path, reading=True) as store:
        assert "\x1b" not in str(store.status())
        assert len(store.plans()) == 1
    with Store(path) as store, pytest.raises(DeeplimitsError, match="a store does not hold"):
        store.put({"odd": ({}, Outcome({"risk": np.array([object()])}))})
