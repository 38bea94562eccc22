"""Two-layer networks: the overlap equations of one-pass SGD, mean-field flows, laziness."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.two_layer import mean_field as mean_field
    from deeplimits.theory.two_layer import overlaps as overlaps
    from deeplimits.theory.two_layer.laziness import expected_laziness as expected_laziness
    from deeplimits.theory.two_layer.laziness import laziness_of_identical_neurons as laziness_of_identical_neurons
    from deeplimits.theory.two_layer.output_scale import output_scaling as output_scaling
