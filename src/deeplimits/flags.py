"""The flags of the command line: the framework's own words, and the parameters of the limit that is named.

A line is read twice. The first reading knows the commands and their own words and finds the name of the limit; the
second knows the parameters of that limit too. Everything stands in the index, so that no help text waits for JAX.
"""

import argparse
import difflib
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from deeplimits.catalogue import Entry, catalogue
from deeplimits.errors import ParameterError, UnknownName, did_you_mean
from deeplimits.guard import BAD_INPUT
from deeplimits.parameters import Integer, Parameter

DESCRIPTION = """\
Compute the limit, simulate the network, see whether they agree.

  deeplimits list                                    every name, one line each
  deeplimits show marchenko-pastur-law               what it states, its parameters, how to call it
  deeplimits predict marchenko-pastur-law --gamma 2  what the theory says
  deeplimits compare marchenko-pastur-law --gamma 2  theory against simulation, with a verdict
  deeplimits sweep ridgeless-double-descent --gamma 0.1:10:50log --noise 0,0.5 --store ridge.db
                                                     a grid of comparisons, kept in a file, drawn as a diagram
  deeplimits diagnose my_model.py:make               a network of your own beside the theory
  deeplimits atlas --out site/                       every limit, compared and drawn, as a site
  deeplimits explore                                 the same live: sliders, and simulations on demand
  deeplimits figure matrix-pca                       a figure of the gallery; without a name, what there is
"""

COMMANDS = (
    "list",
    "show",
    "cite",
    "predict",
    "simulate",
    "compare",
    "sweep",
    "diagnose",
    "atlas",
    "explore",
    "figure",
    "campaign",
)
RUNS = {
    "predict": "what the theory says",
    "simulate": "finite systems, drawn and measured",
    "compare": "theory against simulation, with a verdict",
}
"""The commands that take a limit and its parameters."""
WORDS = (
    *("json", "samples", "seed", "size", "sizes", "plot", "only", "html", "debug", "help"),
    *("store", "until", "per_task", "workers", "dask", "slurm", "time_limit", "memory", "estimate", "status", "resume"),
    *("salvage", "diagram", "export"),
)
"""What these commands call their own flags. A parameter of such a name is --param.NAME in all of them."""
ONLY = "draw just these results, as risk_curve or risk,bias"

PARAMETERS = f"""\
A parameter takes a value, a list 0,0.5,1 or a range 0.1:10:20 (20 points; 0.1:10:20log for equal ratios).
Lists and ranges are run one value after the other. NAME stands before its parameters.
--param.gamma is the same as --gamma; a parameter named like one of the command line's own words
({", ".join(WORDS[:10])}, ...) has only that long form.
"""


class _Names(argparse.Action):
    """Some names, with commas or with spaces between them."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        names = [name.strip() for value in values for name in value.split(",")]
        setattr(namespace, self.dest, [name for name in names if name] or names)


class _Parser(argparse.ArgumentParser):
    """argparse with the habits of this command line: bad input is one line, and exit code 1."""

    def __init__(self, **options: Any):
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        if found := re.match(r"argument COMMAND: invalid choice: '([^']*)'", message):
            hint = did_you_mean(found[1], COMMANDS) or f"; there are {', '.join(COMMANDS)}"
            message = f"there is no command {found[1]!r}{hint}"
        if message.endswith("required: COMMAND"):
            message = f"a command must be given: {', '.join(COMMANDS)}; `deeplimits --help` says more"
        sys.stderr.write(f"{self.prog}: {message}\n")
        raise SystemExit(BAD_INPUT)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """An error about what no flag of this command takes, with the flags that may have been meant."""
        actions = self._option_string_actions.items()
        flags = [flag for flag, action in actions if action.help != argparse.SUPPRESS]
        word = unknown[0].partition("=")[0]
        long = word.replace("--", "--param.", 1)
        near = [long] if long in flags else difflib.get_close_matches(word, flags, n=2)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; `{self.prog} --help` lists the flags"
        self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")


class _Unfinished(Exception):
    """The first reading did not get to the end; the second will say why."""


class _FirstParser(_Parser):
    def error(self, message: str) -> NoReturn:
        raise _Unfinished


def read(arguments: Sequence[str], run: Mapping[str, Callable[[argparse.Namespace], int]]) -> argparse.Namespace:
    """What a command line asks for: the values of its flags, with `run` the function of its command."""
    parser, commands = _parser(_limit_named_in(arguments, run), run)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        commands[options.command].refuse(unknown)
    return options


def _limit_named_in(arguments: Sequence[str], run: Mapping[str, Callable]) -> Entry | None:
    try:
        options, rest = _parser(None, run, first=True)[0].parse_known_args(arguments)
    except _Unfinished:
        return None
    if options.command not in (*RUNS, "sweep", "explore") or (options.command == "explore" and options.name is None):
        return None
    if options.command == "sweep" and (options.name is None or (options.diagram and options.name not in catalogue)):
        # With a diagram there is no NAME: what the first reading takes for one is the value of a parameter.
        from deeplimits.lab.diagrams import DIAGRAMS

        if options.diagram not in DIAGRAMS:
            return None
        options.name = DIAGRAMS[options.diagram].limit
    if options.name not in catalogue and rest and arguments.index(rest[0]) < arguments.index(options.name):
        example = f"deeplimits {options.command} NAME {rest[0]} {options.name}"
        raise UnknownName(
            f"the catalogue has no entry {options.name!r}; NAME stands before its parameters, as in `{example}`"
        )
    entry = catalogue.entry(options.name)
    if entry.role == "function":
        near = difflib.get_close_matches(entry.name, [limit.name for limit in catalogue.limits()], n=1, cutoff=0.7)
        hint = f"; the limit of a similar name is {near[0]}" if near else ""
        raise ParameterError(f"{entry.name} is a function; `deeplimits show {entry.name}` says how to call it{hint}")
    return entry


def _parser(
    entry: Entry | None, run: Mapping[str, Callable], first: bool = False
) -> tuple[_Parser, Mapping[str, _Parser]]:
    make = _FirstParser if first else _Parser
    parser = make(prog="deeplimits", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=_version())
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command", parser_class=make)

    def command(word: str, sentence: str, **options: Any) -> _Parser:
        made = commands.add_parser(word, help=sentence, **options)
        made.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        made.set_defaults(run=run[word])
        return made

    listing = command("list", "every name in the catalogue")
    listing.add_argument("words", nargs="*", help="show only entries that contain all these words")
    listing.add_argument("--json", action="store_true", help="print JSON")
    command("show", "what a name states, its parameters, how to call it").add_argument("name", metavar="NAME")
    citing = command("cite", "BibTeX of what a name rests on; of deeplimits itself, without a name")
    citing.add_argument("name", metavar="NAME", nargs="?")
    for word, sentence in RUNS.items():
        # In the first reading --help waits until the parameters are known.
        made = command(word, sentence, add_help=not first)
        made.add_argument("name", metavar="NAME", help="a limit, see `deeplimits list`")
        made.usage = f"deeplimits {word} NAME [flags]"
        _add_words(made, word)
        _about(made, word, entry)

    sweeping = command("sweep", "a grid of comparisons, on many processes or machines", add_help=not first)
    sweeping.add_argument("name", metavar="NAME", nargs="?", help="a limit, see `deeplimits list`")
    sweeping.usage = (
        "deeplimits sweep NAME --PARAMETER VALUES ... [--store FILE] [flags]\n"
        "       deeplimits sweep --diagram NAME [--store FILE] [flags]\n"
        "       deeplimits sweep --status FILE | --resume FILE | --salvage FILE"
    )
    _add_sweep(sweeping)
    _about(sweeping, "sweep", entry)

    diagnosis = command("diagnose", "a network of your own, measured and set beside the theory")
    diagnosis.add_argument(
        "model",
        metavar="FILE.py:NAME",
        help="a function NAME in FILE.py (or module:NAME) that returns model, loss, data, and perhaps the optimizer; "
        "or a dictionary of these, and of the parameters of a JAX function",
    )
    diagnosis.add_argument(
        "--data",
        metavar="FILE",
        help="data in place of the function's: FILE.npz with two arrays x and y, or FILE.py:NAME",
    )
    diagnosis.add_argument("--budget", default="60s", help="how long it may take, as 30s or 5m (default: 60s)")
    diagnosis.add_argument("--most-memory", metavar="SIZE", help="how much it may hold, as 500MB or 2GB (default: any)")
    diagnosis.add_argument(
        "--only", nargs="+", action=_Names, metavar="PART", help="just these parts, as weights or 'learning rate'"
    )
    diagnosis.add_argument("--seed", type=_seed, default=0, help="seed of the random numbers (default: 0)")
    diagnosis.add_argument("--dry-run", action="store_true", help="say what each part would cost, and look at nothing")
    diagnosis.add_argument("--json", action="store_true", help="print JSON")
    diagnosis.add_argument("--html", metavar="FILE", help="write the report as a page to FILE")

    atlas = command("atlas", "every limit predicted, simulated, compared and drawn, as a site that opens from disk")
    atlas.add_argument("--out", default="site", help="folder to write to (default: site)")
    atlas.add_argument("--only", nargs="+", action=_Names, metavar="NAME", help="just these limits")
    atlas.add_argument("--size", choices=("small", "medium", "large"), default="medium", help="how much to simulate")

    sentence = "a page in the browser: theory that follows sliders, simulations on demand"
    explore = command("explore", sentence, add_help=not first)
    explore.add_argument("name", nargs="?", metavar="NAME", help="the limit to open at (default: the overview)")
    explore.usage = "deeplimits explore [NAME] [--PARAMETER VALUE ...] [flags]"
    _about(explore, "explore", entry)
    explore.add_argument("--host", default="127.0.0.1", help="address to answer at (default: 127.0.0.1, this machine)")
    explore.add_argument("--port", type=_port, default=8765, help="port to answer at, 0 for a free one (default: 8765)")
    explore.add_argument("--site", metavar="FOLDER", help="an atlas, whose thumbnails the overview shows")
    explore.add_argument("--no-browser", action="store_true", help="do not open a browser")

    figure = command("figure", "a figure of the gallery, computed, simulated, drawn and checked")
    figure.add_argument("name", nargs="*", metavar="NAME", help="as F8 or matrix-pca, or all (default: list them)")
    figure.add_argument("--size", choices=("full", "small"), default="full", help="small takes seconds (default: full)")
    figure.add_argument("--out", default="figures", help="folder for PNG, SVG, JSON and the work (default: figures)")
    apart = figure.add_mutually_exclusive_group()
    apart.add_argument("--compute-only", action="store_true", help="leave the numbers in --out, to be drawn elsewhere")
    apart.add_argument("--computed", metavar="FOLDER", help="draw the numbers that --compute-only left in FOLDER")

    campaign = command("campaign", "do the verdicts hold at random parameters inside the ranges?")
    campaign.add_argument("--draws", type=_count, default=2, help="how many of each limit (default: 2)")
    campaign.add_argument("--seed", type=_seed, help="seed of the draws (default: a fresh one, printed)")
    campaign.add_argument("--only", nargs="+", action=_Names, metavar="NAME", help="just these limits")
    campaign.add_argument("--cases", metavar="FILE", help="instead of draws, the cases in a file that --out wrote")
    campaign.add_argument(
        "--out",
        default="campaign.jsonl",
        help="file for the outcomes; what stands there is kept (default: campaign.jsonl)",
    )
    campaign.add_argument(
        "--time-limit", type=_positive, metavar="SECONDS", help="how long a case may take (default: 300)"
    )
    campaign.add_argument("--page", metavar="FILE", help="write what was found, with all that --out holds, as a page")
    campaign.add_argument("--workers", type=_count, help="how many processes (default: one for each core)")
    return parser, commands.choices


def _about(made: argparse.ArgumentParser, word: str, entry: Entry | None) -> None:
    """What is said of the limit that is named, and its parameters."""
    made.epilog = PARAMETERS if word != "explore" else "The page opens at these parameters; its sliders move them."
    if entry is None:
        made.epilog = f"`deeplimits {word} NAME --help` lists the parameters of that limit.\n{made.epilog}"
    else:
        made.description = f"{entry.about.statement.title}.\n`deeplimits show {entry.name}` gives the full statement."
        _add_parameters(made, entry)


def _add_sweep(made: argparse.ArgumentParser) -> None:
    add = made.add_argument
    add("--store", metavar="FILE", help="keep results in this file; the same command then does only what is missing")
    add("--sizes", type=_counts, help="sizes to simulate, as 100,200,400 or 100:400:4")
    add("--samples", type=_count, help="how many systems to draw at each size")
    add("--seed", type=_seed, default=0, help="seed of the random numbers (default: 0)")
    add("--until", type=_positive, metavar="ERROR", help="add samples until standard errors are below this, as 0.01")
    add("--per-task", type=_count, metavar="N", help="systems a task (default: the limit's usual number)")
    add("--workers", type=_workers, metavar="N", help="processes (default: one for each core; 0: this process)")
    add("--dask", metavar="ADDRESS", help="run on the dask scheduler at ADDRESS, or on one started here: local")
    add("--slurm", metavar="OPTIONS", help="run in jobs of Slurm, as queue=long,walltime=02:00:00,memory=4GB,jobs=20")
    add("--time-limit", type=_positive, metavar="SECONDS", help="how long a task may take (default: 3600)")
    add("--memory", type=_positive, metavar="GB", help="how much memory a task may take (default: 8)")
    add("--estimate", action="store_true", help="say what it would take, in time and memory, and run nothing")
    add("--export", nargs="+", metavar="FILE", help="write what was found: .csv, .parquet, .nc (netCDF), .json")
    add("--plot", metavar="FILE", help="write the figure to FILE (png, svg, pdf)")
    add("--only", nargs="+", action=_Names, metavar="RESULT", help=ONLY)
    add("--json", action="store_true", help="print JSON")
    add("--diagram", metavar="NAME", help="a ready sweep, drawn; `--diagram list` names them")
    add("--status", metavar="FILE", help="say how far the sweep in FILE is, also while it runs")
    add("--resume", metavar="FILE", help="go on with the sweep in FILE")
    add("--salvage", metavar="FILE", help="keep what can be read of a damaged FILE")


def _add_words(command: argparse.ArgumentParser, word: str) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")
    if word != "predict":
        command.add_argument("--samples", type=_count, help="how many systems to draw at each size")
        command.add_argument("--seed", type=_seed, default=0, help="seed of the random numbers (default: 0)")
    if word == "simulate":
        command.add_argument("--size", type=_count, help="size of the system")
    if word == "compare":
        command.add_argument("--sizes", type=_counts, help="sizes to simulate, as 100,200,400 or 100:400:4")
    if word != "simulate":
        command.add_argument("--plot", metavar="FILE", help="write the figure to FILE (png, svg, pdf)")
        command.add_argument("--only", nargs="+", action=_Names, metavar="RESULT", help=ONLY)
    if word == "compare":
        command.add_argument("--html", metavar="FILE", help="write a page with statement, figure and verdict to FILE")


def _counts(text: str) -> list[int]:
    try:
        found = Integer(default=1, low=1, high=math.inf).read_many(text)
    except (ValueError, OverflowError):
        found = []
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} cannot be read; give positive whole numbers, as 100,200,400 or 100:400:4"
        )
    return found


def _seed(text: str) -> int:
    try:
        found = int(text)
    except ValueError:
        found = -1
    if not 0 <= found < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give a whole number between 0 and {2**63 - 1}")
    return found


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give a whole number between 0 and 65535")
    return int(text)


def _positive(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give a positive number")
    return found


def _workers(text: str) -> int:
    return 0 if text == "0" else _count(text)


def _count(text: str) -> int:
    found = _counts(text)
    if len(found) > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is more than one number")
    return found[0]


def _add_parameters(command: argparse.ArgumentParser, entry: Entry) -> None:
    group = command.add_argument_group("parameters of the limit")
    for name, parameter in entry.about.parameters.items():
        short, long = f"--{name.replace('_', '-')}", f"--param.{name.replace('_', '-')}"
        options: dict[str, Any] = {
            "dest": destination(name),
            "metavar": name.upper() if parameter.kind != "choice" else "WORD",
            "help": f"{parameter.doc}; {parameter.allowed} (default: {default_of(parameter)})".replace("%", "%%"),
        }
        if name in WORDS:
            group.add_argument(long, **options)
        else:
            group.add_argument(short, **options)
            group.add_argument(long, **{**options, "help": argparse.SUPPRESS})


def destination(name: str) -> str:
    """Where the text given for a parameter stands among the options."""
    return f"param.{name}"


def values(entry: Entry, options: argparse.Namespace) -> Iterator[tuple[str, list[Any]]]:
    """The parameters that were given, each with the values it is to take."""
    for name, parameter in entry.about.parameters.items():
        text = getattr(options, destination(name), None)
        if text is None:
            continue
        try:
            yield name, parameter.read_many(text)
        except ValueError as error:
            raise ParameterError(
                f"{entry.about.name}: {name} = {text!r} cannot be read ({error}); it must be {parameter.allowed}"
            ) from None


def default_of(parameter: Parameter) -> str:
    """The default, as one would type it."""
    if isinstance(parameter.default, tuple):
        return ",".join(f"{value:g}" for value in parameter.default)
    return f"{parameter.default:g}" if isinstance(parameter.default, float) else str(parameter.default)


def _version() -> str:
    import deeplimits

    return f"deeplimits {deeplimits.__version__}"
