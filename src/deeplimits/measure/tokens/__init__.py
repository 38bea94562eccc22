"""How tokens cluster: pairs, clusters, histograms, energies and entropies of attention, time to collapse."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.measure.tokens.clustering import attention_entropy as attention_entropy
    from deeplimits.measure.tokens.clustering import chord as chord
    from deeplimits.measure.tokens.clustering import cluster_count as cluster_count
    from deeplimits.measure.tokens.clustering import cluster_labels as cluster_labels
    from deeplimits.measure.tokens.clustering import clustered_share as clustered_share
    from deeplimits.measure.tokens.clustering import cosine_histogram as cosine_histogram
    from deeplimits.measure.tokens.clustering import log_energy as log_energy
    from deeplimits.measure.tokens.clustering import time_to_collapse as time_to_collapse
