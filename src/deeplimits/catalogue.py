"""The table of everything: each name leads to a limit, to a named result of a limit, or to a public function.

Nothing here imports JAX; what a name leads to is imported when it is asked for, and what is known of it without that
stands in the index. Limits are named like their files, and their classes like them: `dpp` is `Dpp`.
"""

import functools
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Literal

from deeplimits import index, references, searching
from deeplimits.errors import UnknownName, did_you_mean
from deeplimits.render import notebook, text

ENTRY_POINT_GROUP = "deeplimits.limits"

RESULTS = {
    "arc-cosine-ntk": "empirical-ntk:arc_cosine",
    "covariance-operator-norm-gap": "marchenko-pastur-law:operator_norm_gap",
    "deep-linear-kernel": "nngp-kernel-recursion:linear_covariance",
    "double-descent-ridge-regression": "ridge-general-covariance:risk_curve",
    "fan-in-scaling": "nngp-kernel-recursion:first_layer",
    "free-multiplicative-convolution": "free-additive-convolution:product_transform",
    "gd-minibatch-onepass": "saad-solla-ode:minibatch",
    "kernel-gradient-descent": "kernel-gradient-flow:descent",
    "nngp-recursion": "ntk-recursion:nngp",
    "random-feature-double-descent": "random-feature-ridge-mse:test_curve",
    "random-feature-resolvent": "random-feature-ridge-mse:resolvent",
    "quadratic-effective-features": "quadratic-model-perturbation:effective_features",
    "relu-correlation-map": "nngp-kernel-recursion:relu_correlation",
    "rubio-mestre-resolvent": "generalized-mp-silverstein:resolvent",
    "sample-covariance-inconsistency": "marchenko-pastur-law:frobenius_gap",
    "sherman-morrison-leave-one-out": "stieltjes-transform-and-inversion:leave_one_out",
    "trace-lemma": "stieltjes-transform-and-inversion:quadratic_form",
}
"""Named results of a limit: name -> limit:result."""

FUNCTIONS = {
    "activation-integrals": "theory.two_layer.overlaps:activation_integrals",
    "activation-region-bound": "theory.expressivity:activation_region_bound",
    "alignment-and-lives-in": "measure:alignment",
    "bayes-evidence-maximization": "theory.bayes:select_architecture",
    "carl-type-inequality": "theory.expressivity:carl_bits",
    "conjugate-kernel-closed-forms": "theory.gaussian:dual",
    "criticality-solver": "theory.initialization:criticality",
    "deq-explicit-equivalent": "theory.mixtures:explicit_equivalent",
    "depth-scales": "theory.initialization:depth_scales",
    "difference-convolution-matrix": "theory.spectra:difference_singular_values",
    "du-convergence": "theory.kernels:du_convergence",
    "early-stopping": "theory.regression:optimal_stopping",
    "entropy-numbers": "theory.expressivity:entropy_numbers",
    "entropy-to-width": "theory.expressivity:entropy_to_width",
    "exact-breakpoints": "measure.regions:line_pieces",
    "gradient-flow-linearization": "theory.kernels:linearized_flow",
    "gram-positive-definite": "theory.kernels:gram_definiteness",
    "gronwall-and-weyl": "theory.inequalities:gronwall",
    "gronwall-bihari-lasalle": "theory.inequalities:growth_bounds",
    "half-stable-class": "theory.initialization:half_stable_law",
    "higham-network-sgd": "ensembles:train_classic_network",
    "hoeffding-inequality": "theory.inequalities:hoeffding",
    "information-exponent": "theory.online_sgd:information_exponent",
    "kernel-ridge-gp": "theory.kernels:kernel_ridge",
    "kstar-zero-class": "theory.initialization:decay_to_zero",
    "large-learning-rate-phases": "theory.landscape:learning_rate_phases",
    "lazy-scaling-alpha-theorem": "theory.kernels:lazy_scaling",
    "lazy-training-bounds": "theory.kernels:lazy_training_bounds",
    "linear-and-nonlinear-shrinkage": "theory.spectra:oracle_shrinkage",
    "marchenko-pastur": "theory.spectra:marchenko_pastur",
    "marchenko-pastur-self-consistent": "theory.spectra:marchenko_pastur_stieltjes",
    "martingale-inequalities": "theory.inequalities:azuma",
    "matrix-bernstein": "theory.inequalities:matrix_bernstein",
    "mean-field-global-convergence": "theory.two_layer.mean_field:wasserstein_flow",
    "ntk-lossless-compression": "diagnosis:compress",
    "nonlinear-gram-spikes": "theory.spectra:nonlinear_gram_spikes",
    "nonlinear-quadratic-form": "theory.kernels:nonlinear_quadratic_form",
    "ntk-lambda-max-bounds": "theory.expressivity:ntk_eigenvalue_bounds",
    "ntk-two-layer": "theory.kernels:two_layer_ntk",
    "ntk-universal-approximation": "theory.kernels:ring_coefficients",
    "one-hidden-layer-1d": "theory.expressivity:one_hidden_layer_pieces",
    "open-directions": "theory.landscape:open_directions",
    "regularity-assumptions": "theory.online_sgd:check_regularity",
    "relu-path-sum": "theory.expressivity:path_sum",
    "review-model-and-errors": "measure:error_split",
    "ridge-gradient-flow": "theory.regression:ridge_flow",
    "ridgeless-finite-sample": "theory.regression:ridgeless_finite_sample_risk",
    "rkhs": "theory.kernels:rkhs_squared_norm",
    "sgd-regime-diagram": "theory.two_layer.overlaps:regime",
    "stieltjes-concentration": "theory.spectra:trace_fluctuation",
    "telgarsky-sawtooth": "theory.expressivity:sawtooth",
    "ternary-random-features": "theory.mixtures:ternary_match",
    "two-layer-ntk-gram": "theory.kernels:two_layer_gram",
    "two-layer-taylor-expansion": "theory.kernels:two_layer_expansion",
    "xor-component-count": "theory.online_sgd:xor_component_count",
    "zaslavsky": "theory.expressivity:cell_count",
}
"""Functions: name -> room:function, below `deeplimits`."""


ROOMS = {
    "attention": "attention, transformers, tokens",
    "bayes": "Bayesian deep linear networks: evidence, posterior, model selection",
    "bias": "implicit bias: which solution the optimizer picks",
    "ensembles": "finite random systems, to be drawn: matrices, networks, estimators, training",
    "expressivity": "expressivity: paths, linear regions, breakpoints, entropy and widths",
    "gaussian": "Gaussian integrals, dual activations, conjugate kernels",
    "inequalities": "concentration inequalities",
    "initialization": "initialization: signal propagation, criticality",
    "kernels": "wide networks and kernels, infinite width",
    "landscape": "the loss landscape: Hessians, sharpness, edge of stability",
    "mixtures": "kernels of mixtures, one step of feature learning, compression, equilibrium models",
    "measure": "instruments for finite systems",
    "online_sgd": "online SGD, one-pass stochastic gradient descent",
    "regression": "exact learning curves: linear regression, double descent",
    "spectra": "laws of eigenvalues, random matrices",
    "two_layer": "two-layer networks: overlaps, mean field, feature learning",
}
"""What the rooms are about, in words that one would search for."""


@dataclass(frozen=True)
class Entry:
    """One name of the catalogue."""

    name: str
    role: Literal["limit", "result", "function"]
    target: str
    """Full path `package.module:Name` of the limit's class or of the function."""
    result: str = ""
    """Which of the limit's results the name stands for."""
    said: str = ""
    """The title of a function that a room offers and the catalogue does not list."""

    @property
    def about(self) -> index.Record:
        """What it states and takes."""
        return index.record(self.target)

    @property
    def room(self) -> str:
        """The room of theory that it belongs to; for what has none, the part of the house."""
        package, *parts = self.target.partition(":")[0].split(".")
        if package != "deeplimits":
            return package
        return parts[1] if parts[0] in ("limits", "theory") else parts[0]

    @property
    def title(self) -> str:
        title = self.said or self.about.statement.title
        return f"{self.result.replace('_', ' ')}: {title[0].lower()}{title[1:]}" if self.result else title

    def load(self) -> Any:
        module, _, name = self.target.partition(":")
        return getattr(importlib.import_module(module), name)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "role": self.role,
            "room": self.room,
            "title": self.title,
            "references": [] if self.said else list(self.about.statement.references),
            "target": self.target,
            **({"result": self.result} if self.result else {}),
        }


class Listing(tuple[Entry, ...]):
    """Entries, printed as a table."""

    def __repr__(self) -> str:
        if not self:
            return "(no entries)"
        return "\n".join(text.aligned([(entry.name, entry.role, entry.room, entry.title) for entry in self]))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        rows = [(entry.name, entry.role, entry.room, entry.title) for entry in self]
        return notebook.fragment(f"{len(self)} names", ("name", "leads to a", "room", "states"), rows)


class Catalogue(Mapping[str, Any]):
    """`catalogue()` lists, `catalogue["name"]` gives the limit's class (or the function), `search` finds by word."""

    def __call__(self) -> Listing:
        return Listing(self._entries.values())

    def __repr__(self) -> str:
        return f'{len(self)} names: dl.catalogue() lists them, dl.catalogue.search("words") finds some'

    def __getitem__(self, name: str) -> Any:
        return self.entry(name).load()

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, name: str) -> Entry:
        """What a name leads to, in the catalogue or in a room; an unknown name is answered with the nearest ones."""
        if name in self._entries:
            return self._entries[name]
        offered = index.offered()
        meant = [one for one in offered if name.replace("-", "_") in (one, one.rpartition(".")[2])]
        if len(meant) == 1:
            return self._function(meant[0])
        if meant:
            raise UnknownName(f"{name!r} is in several rooms; say {' or '.join(meant)}")
        classes = {entry.about.name: entry.name for entry in self._entries.values() if entry.role == "limit"}
        if name in classes:
            return self._entries[classes[name]]
        names = {one.rpartition(".")[2]: one for one in offered}
        wanted = name.rpartition(".")[2].replace("-", "_")
        hint = did_you_mean(name, self._entries, least=0.75) or did_you_mean(wanted, names, least=0.75)
        hint = hint or did_you_mean(name, self._entries) or "; `deeplimits list` shows all names"
        raise UnknownName(f"the catalogue has no entry {name!r}{hint}")

    def limits(self) -> Listing:
        """The entries that are limits of their own."""
        return Listing(entry for entry in self._entries.values() if entry.role == "limit")

    def search(self, words: str) -> Listing:
        """What has every one of these words, or of their synonyms, in its name, class, room, statement or cited titles.

        After the names of the catalogue come the functions that the rooms offer for one's own data.

        >>> [entry.name for entry in catalogue.search("svm")][:1]
        ['hard-margin-predictor']
        """

        def text(entry: Entry) -> str:
            room = f"{entry.room} {ROOMS.get(entry.room, '')}"
            if entry.said:
                return searching.plain(f"{entry.name} {room} {entry.said}")
            stated = entry.about.statement
            cited = references.lines(stated.references, entry.about.module).values()
            return searching.plain(" ".join((entry.name, entry.about.name, room, stated.doc, *cited)))

        wanted = searching.meant(words)

        def rank(entry: Entry) -> tuple[bool, int]:
            # What is called so stands before what only mentions it, and the catalogue before the rooms.
            said = (entry.name, entry.name if entry.said else entry.about.name, entry.title)
            near = [searching.matches(searching.plain(one), wanted) for one in said]
            return bool(entry.said), near.index(True) if any(near) else len(near)

        everything = (*self._entries.values(), *self._offered.values())
        return Listing(sorted((entry for entry in everything if searching.matches(text(entry), wanted)), key=rank))

    @functools.cached_property
    def _offered(self) -> dict[str, Entry]:
        """The functions of the rooms that have no name in the catalogue, by `room.function`."""
        listed = {entry.target for entry in self._entries.values()}
        found = {
            name: Entry(name, "function", f"{part.module}:{part.name}", said=part.title)
            for name, part in index.offered().items()
        }
        return {name: entry for name, entry in found.items() if entry.target not in listed}

    def _function(self, name: str) -> Entry:
        """A function of a room, `room.function`; by its name in the catalogue where it has one."""
        if name in self._offered:
            return self._offered[name]
        part = index.offered()[name]
        return next(entry for entry in self._entries.values() if entry.target == f"{part.module}:{part.name}")

    def name_of(self, cls: type) -> str:
        """The catalogue's name of a limit's class; the class's own name where it is not in the catalogue."""
        return self.name_of_target(f"{cls.__module__}:{cls.__qualname__}")

    def name_of_target(self, target: str) -> str:
        """The name of the limit at `package.module:Class`; the class's own name where it is not in the catalogue."""
        names = (entry.name for entry in self._entries.values() if entry.role == "limit" and entry.target == target)
        return next(names, target.rpartition(":")[2])

    @functools.cached_property
    def _entries(self) -> dict[str, Entry]:
        limits = index.limits()
        entries = [Entry(name, "limit", target) for name, target in limits.items()]
        for name, target in RESULTS.items():
            limit, _, result = target.partition(":")
            entries.append(Entry(name, "result", limits[limit], result))
        entries += [Entry(name, "function", f"deeplimits.{target}") for name, target in FUNCTIONS.items()]
        own = {entry.name for entry in entries}
        for point in entry_points(group=ENTRY_POINT_GROUP):
            if point.name not in own:
                entries.append(Entry(point.name, "limit", point.value))
        return {entry.name: entry for entry in sorted(entries, key=lambda entry: entry.name)}


catalogue = Catalogue()
