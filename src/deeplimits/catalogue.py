"""The table of everything: each name leads to a limit, to a named result of a limit, or to a public function.

Nothing here imports JAX; what a name leads to is imported when it is asked for.
"""

import difflib
import functools
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Literal

from deeplimits import source
from deeplimits.errors import UnknownName

ENTRY_POINT_GROUP = "deeplimits.limits"

LIMITS = {
    "abc-parametrization": "initialization.abc_parametrization:AbcParametrization",
    "bai-yin-edges": "spectra.bai_yin_edges:ExtremeEigenvalues",
    "circle-diffusion": "bias.circle_diffusion:CircleDiffusion",
    "classical-gradient-flow-limit": "two_layer.classical_gradient_flow_limit:ClassicalGradientFlow",
    "classical-ode-limit": "online_sgd.classical_ode_limit:ClassicalOdeLimit",
    "critical-window-search": "online_sgd.critical_window_search:CriticalWindow",
    "deep-linear-norm": "spectra.deep_linear_norm:DeepLinearNorm",
    "deep-linear-width-ck-spectrum": "spectra.deep_linear_width_ck_spectrum:ConjugateKernelSpectrum",
    "diagonal-network-bias": "bias.diagonal_network_bias:DiagonalNetwork",
    "directional-error-martingale": "online_sgd.directional_error_martingale:DirectionalErrorMartingale",
    "dpp": "kernels.dpp:DeterminantalProcess",
    "dynamical-isometry": "spectra.dynamical_isometry:DynamicalIsometry",
    "early-stopped-gradient-flow-risk": "regression.early_stopped_gradient_flow_risk:EarlyStoppedRegression",
    "effective-dynamics-framework": "online_sgd.effective_dynamics_framework:EffectiveDynamicsFramework",
    "empirical-ntk": "kernels.empirical_ntk:EmpiricalTangentKernel",
    "entropic-drift": "bias.entropic_drift:EntropicDrift",
    "equator-initialization": "online_sgd.equator_initialization:EquatorInitialization",
    "escape-from-mediocrity": "two_layer.escape_from_mediocrity:EscapeFromMediocrity",
    "exit-times-search-vs-descent": "online_sgd.exit_times_search_vs_descent:ExitTimes",
    "finite-width-kurtosis": "initialization.finite_width_kurtosis:FiniteWidthKurtosis",
    "fluctuation-dissipation": "bias.fluctuation_dissipation:FluctuationDissipation",
    "free-additive-convolution": "spectra.free_additive_convolution:FreeConvolution",
    "gd-linear-stability": "bias.gd_linear_stability:GradientDescentStability",
    "gd-min-norm-least-squares": "bias.gd_min_norm_least_squares:MinNormLeastSquares",
    "gd-separable-max-margin": "bias.gd_separable_max_margin:SeparableMaxMargin",
    "gd-sgd-noisy-gd": "bias.gd_sgd_noisy_gd:StochasticDescent",
    "generalized-mp-silverstein": "spectra.generalized_mp_silverstein:PopulationSpectrum",
    "gradient-descent-dynamics-gmm": "regression.gradient_descent_dynamics_gmm:MixtureDynamics",
    "hard-margin-predictor": "bias.hard_margin_predictor:HardMarginPredictor",
    "homogeneous-network-margin": "bias.homogeneous_network_margin:HomogeneousMargin",
    "kernel-gradient-flow": "kernels.kernel_gradient_flow:KernelGradientFlow",
    "knn-bias-variance": "regression.knn_bias_variance:NearestNeighbours",
    "lazy-scaling-criterion": "two_layer.lazy_scaling_criterion:LazyScaling",
    "lazy-two-layer-scalings": "kernels.lazy_two_layer_scalings:LazyTwoLayer",
    "marchenko-pastur-law": "spectra.marchenko_pastur_law:MarchenkoPastur",
    "max-margin-gradient-flow": "bias.max_margin_gradient_flow:MaxMarginGradientFlow",
    "mean-field-high-d-reduction": "two_layer.mean_field_high_d_reduction:MeanFieldReduction",
    "mean-field-wasserstein-flow": "two_layer.mean_field_wasserstein_flow:WassersteinFlow",
    "mercer-feature-map": "kernels.mercer_feature_map:MercerEigenvalues",
    "misspecified-and-latent-ridgeless": "regression.misspecified_and_latent_ridgeless:MisspecifiedRegression",
    "nadaraya-watson-singular-kernel": "regression.nadaraya_watson_singular_kernel:SingularKernelSmoother",
    "nngp-kernel-recursion": "initialization.nngp_kernel_recursion:KernelRecursion",
    "noise-floor-and-critical-learning-rate": "two_layer.noise_floor_and_critical_learning_rate:NoiseFloor",
    "noisy-gd": "bias.noisy_gd:NoisyDescent",
    "nonlinear-gram-spectrum": "spectra.nonlinear_gram_spectrum:NonlinearGram",
    "ntk-learning-rate-scaling": "initialization.ntk_learning_rate_scaling:LearningRateScaling",
    "ntk-recursion": "kernels.ntk_recursion:InfiniteWidth",
    "ntk-training-constancy": "kernels.ntk_training_constancy:TrainingConstancy",
    "ntk-vs-mean-field-scaling": "kernels.ntk_vs_mean_field_scaling:OutputScale",
    "order-chaos-phase-diagram": "initialization.order_chaos_phase_diagram:OrderAndChaos",
    "overlap-markov-chain": "two_layer.overlap_markov_chain:OverlapMarkovChain",
    "population-loss-binary-gmm": "online_sgd.population_loss_binary_gmm:BinaryMixture",
    "population-loss-online-pca": "online_sgd.population_loss_online_pca:OnlinePca",
    "population-loss-teacher-student": "online_sgd.population_loss_teacher_student:TeacherStudent",
    "population-risk-from-overlaps": "two_layer.population_risk_from_overlaps:PopulationRisk",
    "proportional-max-margin": "bias.proportional_max_margin:ProportionalMaxMargin",
    "quadratic-model-perturbation": "bias.quadratic_model_perturbation:QuadraticModel",
    "random-feature-kernel": "kernels.random_feature_kernel:RandomFeatureKernel",
    "random-feature-ridge-mse": "regression.random_feature_ridge_mse:RandomFeatureRegression",
    "relu-linearization-bound": "kernels.relu_linearization_bound:ReluLinearization",
    "ridge-general-covariance": "regression.ridge_general_covariance:RidgeRegression",
    "ridgeless-double-descent": "regression.ridgeless_double_descent:RidgelessRegression",
    "saad-solla-ode": "two_layer.saad_solla_ode:SaadSolla",
    "sample-complexity-thresholds": "online_sgd.sample_complexity_thresholds:SampleComplexity",
    "sgd-concentration-rate": "two_layer.sgd_concentration_rate:SgdConcentration",
    "sgd-fluctuations": "two_layer.sgd_fluctuations:SgdFluctuations",
    "sgd-noise-decomposition": "two_layer.sgd_noise_decomposition:SgdNoise",
    "sgd-stationary-linear-regression": "bias.sgd_stationary_linear_regression:StationarySGD",
    "single-index-incremental-learning": "two_layer.single_index_incremental_learning:IncrementalLearning",
    "smooth-linearization-bound": "kernels.smooth_linearization_bound:SmoothLinearizationBound",
    "spherical-online-sgd": "online_sgd.spherical_online_sgd:SphericalOnlineSgd",
    "spiked-covariance-bbp": "spectra.spiked_covariance_bbp:SpikedCovariance",
    "spiked-microscopic-sde": "online_sgd.spiked_microscopic_sde:SpikedMicroscopicSde",
    "spiked-tensor-ballistic": "online_sgd.spiked_tensor_ballistic:SpikedTensorBallistic",
    "spiked-tensor-fixed-points": "online_sgd.spiked_tensor_fixed_points:SpikedTensorFixedPoints",
    "stieltjes-transform-and-inversion": "spectra.stieltjes_transform_and_inversion:ResolventTrace",
    "symmetric-plateau-and-specialization": "two_layer.symmetric_plateau_and_specialization:SymmetricPlateau",
    "xor-gmm-ballistic": "online_sgd.xor_gmm_ballistic:XorGmmBallistic",
    "xor-large-lambda-limit": "online_sgd.xor_large_lambda_limit:XorLargeLambda",
    "xor-success-probability": "online_sgd.xor_success_probability:XorSuccessProbability",
}
"""Limits: name -> family.module:Class, below `deeplimits.limits`."""

RESULTS = {
    "arc-cosine-ntk": "empirical-ntk:arc_cosine",
    "covariance-operator-norm-gap": "marchenko-pastur-law:operator_norm_gap",
    "deep-linear-kernel": "nngp-kernel-recursion:linear_covariance",
    "depth-scales": "order-chaos-phase-diagram:depth_scale",
    "double-descent-ridge-regression": "ridge-general-covariance:risk_curve",
    "fan-in-scaling": "nngp-kernel-recursion:first_layer",
    "free-multiplicative-convolution": "free-additive-convolution:product_transform",
    "gd-minibatch-onepass": "saad-solla-ode:minibatch",
    "gradient-flow-linearization": "kernel-gradient-flow:linearization",
    "kernel-gradient-descent": "kernel-gradient-flow:descent",
    "linear-and-nonlinear-shrinkage": "generalized-mp-silverstein:nonlinear_loss",
    "nngp-recursion": "ntk-recursion:nngp",
    "random-feature-double-descent": "random-feature-ridge-mse:test_curve",
    "random-feature-resolvent": "random-feature-ridge-mse:resolvent",
    "quadratic-effective-features": "quadratic-model-perturbation:effective_features",
    "relu-correlation-map": "nngp-kernel-recursion:relu_correlation",
    "rubio-mestre-resolvent": "generalized-mp-silverstein:resolvent",
    "sample-covariance-inconsistency": "marchenko-pastur-law:frobenius_gap",
    "sherman-morrison-leave-one-out": "stieltjes-transform-and-inversion:leave_one_out",
    "trace-lemma": "stieltjes-transform-and-inversion:quadratic_form",
    "weak-and-strong-recovery": "population-loss-online-pca:weak_recovery",
}
"""Named results of a limit: name -> limit:result."""

FUNCTIONS = {
    "activation-integrals": "theory.two_layer.overlaps.integrals.moments:activation_integrals",
    "conjugate-kernel-closed-forms": "theory.gaussian.duals:dual",
    "criticality-solver": "theory.initialization.criticality:criticality",
    "difference-convolution-matrix": "theory.spectra.equivalents:difference_singular_values",
    "du-convergence": "theory.kernels.lazy:du_convergence",
    "early-stopping": "theory.regression.mixture_dynamics:optimal_stopping",
    "gram-positive-definite": "theory.kernels.definiteness:gram_definiteness",
    "gronwall-and-weyl": "theory.inequalities.basic:gronwall",
    "gronwall-bihari-lasalle": "theory.inequalities.growth:growth_bounds",
    "half-stable-class": "theory.initialization.depth_laws:half_stable_law",
    "higham-network-sgd": "ensembles.classic_network:train_classic_network",
    "hoeffding-inequality": "theory.inequalities.basic:hoeffding",
    "information-exponent": "theory.online_sgd.single_index:information_exponent",
    "kernel-ridge-gp": "theory.kernels.gaussian_process:kernel_ridge",
    "kstar-zero-class": "theory.initialization.depth_laws:decay_to_zero",
    "lazy-scaling-alpha-theorem": "theory.kernels.lazy:lazy_scaling",
    "lazy-training-bounds": "theory.kernels.lazy:lazy_training_bounds",
    "marchenko-pastur": "theory.spectra.laws:marchenko_pastur",
    "marchenko-pastur-self-consistent": "theory.spectra.marchenko_pastur:stieltjes",
    "martingale-inequalities": "theory.inequalities.basic:azuma",
    "matrix-bernstein": "theory.inequalities.matrix_bernstein:matrix_bernstein",
    "mean-field-global-convergence": "theory.two_layer.mean_field.particles:wasserstein_flow",
    "nonlinear-gram-spikes": "theory.spectra.networks:nonlinear_gram_spikes",
    "nonlinear-quadratic-form": "theory.kernels.two_layer:nonlinear_quadratic_form",
    "ntk-two-layer": "theory.kernels.two_layer:two_layer_ntk",
    "ntk-universal-approximation": "theory.kernels.sphere:ring_coefficients",
    "regularity-assumptions": "theory.online_sgd.regularity:check_regularity",
    "review-model-and-errors": "measure.errors:error_split",
    "ridge-gradient-flow": "theory.regression.gradient_flow:ridge_flow",
    "ridgeless-finite-sample": "theory.regression.ridgeless:finite_sample_risk",
    "rkhs": "theory.kernels.rkhs:squared_norm",
    "sgd-regime-diagram": "theory.two_layer.overlaps.regimes:regime",
    "stieltjes-concentration": "theory.spectra.equivalents:trace_fluctuation",
    "two-layer-ntk-gram": "theory.kernels.two_layer:two_layer_gram",
    "two-layer-taylor-expansion": "theory.kernels.linearization:two_layer_expansion",
    "xor-component-count": "theory.online_sgd.xor:component_count",
}
"""Functions: name -> module:function, below `deeplimits`."""


@dataclass(frozen=True)
class Entry:
    """One name of the catalogue."""

    name: str
    role: Literal["limit", "result", "function"]
    target: str
    """Full path `package.module:Name` of the limit's class or of the function."""
    result: str = ""
    """Which of the limit's results the name stands for."""

    @property
    def source(self) -> source.Source:
        return source.read(self.target)

    @property
    def family(self) -> str:
        parts = self.target.partition(":")[0].split(".")
        return parts[-2] if len(parts) > 1 else parts[0]

    @property
    def title(self) -> str:
        title = source.first_line(self.target)
        return f"{self.result.replace('_', ' ')}: {title[0].lower()}{title[1:]}" if self.result else title

    def load(self) -> Any:
        module, _, name = self.target.partition(":")
        return getattr(importlib.import_module(module), name)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "role": self.role,
            "family": self.family,
            "title": self.title,
            "references": list(self.source.references),
            "target": self.target,
            **({"result": self.result} if self.result else {}),
        }


class Listing(tuple[Entry, ...]):
    """Entries, printed as a table."""

    def __repr__(self) -> str:
        if not self:
            return "(no entries)"
        wide = max(len(entry.name) for entry in self)
        broad = max(len(entry.family) for entry in self)
        return "\n".join(f"{entry.name:<{wide}}  {entry.family:<{broad}}  {entry.title}" for entry in self)

    __str__ = __repr__


class Catalogue(Mapping[str, Any]):
    """`catalogue()` lists, `catalogue["name"]` gives the limit's class (or the function), `search` finds by word."""

    def __call__(self) -> Listing:
        return Listing(self._entries.values())

    def __getitem__(self, name: str) -> Any:
        return self.entry(name).load()

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, name: str) -> Entry:
        """What a name leads to; an unknown name is answered with the nearest ones."""
        try:
            return self._entries[name]
        except KeyError:
            near = difflib.get_close_matches(name, self._entries, n=3, cutoff=0.5)
            hint = f"; did you mean {' or '.join(near)}?" if near else "; `deeplimits list` shows all names"
            raise UnknownName(f"the catalogue has no entry {name!r}{hint}") from None

    def limits(self) -> Listing:
        """The entries that are limits of their own."""
        return Listing(entry for entry in self._entries.values() if entry.role == "limit")

    def search(self, words: str) -> Listing:
        """The entries whose name, family or statement contains every one of these words."""

        def text(entry: Entry) -> str:
            return f"{entry.name} {entry.family} {entry.source.doc}".lower()

        return Listing(
            entry for entry in self._entries.values() if all(word in text(entry) for word in words.lower().split())
        )

    def name_of(self, cls: type) -> str:
        """The catalogue's name of a limit's class; the class's own name where it is not in the catalogue."""
        return self.name_of_target(f"{cls.__module__}:{cls.__qualname__}")

    def name_of_target(self, target: str) -> str:
        """The name of the limit at `package.module:Class`; the class's own name where it is not in the catalogue."""
        names = (entry.name for entry in self._entries.values() if entry.role == "limit" and entry.target == target)
        return next(names, target.rpartition(":")[2])

    @functools.cached_property
    def _entries(self) -> dict[str, Entry]:
        entries = [Entry(name, "limit", f"deeplimits.limits.{target}") for name, target in LIMITS.items()]
        for name, target in RESULTS.items():
            limit, _, result = target.partition(":")
            entries.append(Entry(name, "result", f"deeplimits.limits.{LIMITS[limit]}", result))
        entries += [Entry(name, "function", f"deeplimits.{target}") for name, target in FUNCTIONS.items()]
        own = {entry.name for entry in entries}
        for point in entry_points(group=ENTRY_POINT_GROUP):
            if point.name not in own:
                entries.append(Entry(point.name, "limit", point.value))
        return {entry.name: entry for entry in sorted(entries, key=lambda entry: entry.name)}


catalogue = Catalogue()
