"""Finite random systems: data, networks, estimators and the ways they are trained."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.ensembles import transformers as transformers
    from deeplimits.ensembles.classic_network import ClassicNetwork as ClassicNetwork
    from deeplimits.ensembles.classic_network import random_network as random_network
    from deeplimits.ensembles.classic_network import train_classic_network as train_classic_network
    from deeplimits.ensembles.committees import Network as Network
    from deeplimits.ensembles.committees import one_pass_sgd as one_pass_sgd
    from deeplimits.ensembles.committees import with_overlaps as with_overlaps
    from deeplimits.ensembles.data import from_law as from_law
    from deeplimits.ensembles.data import in_ball as in_ball
    from deeplimits.ensembles.data import independent_entries as independent_entries
    from deeplimits.ensembles.data import on_sphere as on_sphere
    from deeplimits.ensembles.deep_networks import pair_chain as pair_chain
    from deeplimits.ensembles.deep_networks import preactivations as preactivations
    from deeplimits.ensembles.deep_networks import variance_chain as variance_chain
    from deeplimits.ensembles.determinantal import determinantal_sample as determinantal_sample
    from deeplimits.ensembles.diffusions import sample_path as sample_path
    from deeplimits.ensembles.estimators import NestedLeastSquares as NestedLeastSquares
    from deeplimits.ensembles.estimators import max_margin as max_margin
    from deeplimits.ensembles.estimators import min_norm_fit as min_norm_fit
    from deeplimits.ensembles.estimators import ridge_fit as ridge_fit
    from deeplimits.ensembles.flows import classification_flow as classification_flow
    from deeplimits.ensembles.flows import diagonal_network_flow as diagonal_network_flow
    from deeplimits.ensembles.flows import gradient_flow as gradient_flow
    from deeplimits.ensembles.flows import separable_flow as separable_flow
    from deeplimits.ensembles.linear_training import ridge_descent as ridge_descent
    from deeplimits.ensembles.linear_training import ridge_flow as ridge_flow
    from deeplimits.ensembles.matrices import gated_product as gated_product
    from deeplimits.ensembles.matrices import uniform_orthogonal as uniform_orthogonal
    from deeplimits.ensembles.mixtures import two_classes as two_classes
    from deeplimits.ensembles.online_sgd import euclidean as euclidean
    from deeplimits.ensembles.online_sgd import spherical as spherical
    from deeplimits.ensembles.online_sgd import spiked_tensor as spiked_tensor
    from deeplimits.ensembles.overlap_steps import first_passages as first_passages
    from deeplimits.ensembles.overlap_steps import overlap_chain as overlap_chain
    from deeplimits.ensembles.random_features import RidgeErrors as RidgeErrors
    from deeplimits.ensembles.random_features import fourier as fourier
    from deeplimits.ensembles.random_features import neurons as neurons
    from deeplimits.ensembles.random_features import ridge_errors as ridge_errors
    from deeplimits.ensembles.trainers import gradient_descent as gradient_descent
    from deeplimits.ensembles.trainers import noisy_gradient_descent as noisy_gradient_descent
    from deeplimits.ensembles.trainers import stochastic_gradient_descent as stochastic_gradient_descent
    from deeplimits.ensembles.two_layer_networks import TwoLayer as TwoLayer
    from deeplimits.ensembles.two_layer_networks import two_layer as two_layer
    from deeplimits.ensembles.two_layer_networks import two_layer_model as two_layer_model
    from deeplimits.ensembles.wide_networks import WideNetwork as WideNetwork
