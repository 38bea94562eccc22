"""Transformers: attention as particles on the sphere, random layers, residual networks, a pretrained encoder."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.ensembles.transformers.blockwise import blockwise_velocity as blockwise_velocity
    from deeplimits.ensembles.transformers.particles import AttentionLayer as AttentionLayer
    from deeplimits.ensembles.transformers.particles import FeedForward as FeedForward
    from deeplimits.ensembles.transformers.particles import after_layers as after_layers
    from deeplimits.ensembles.transformers.particles import attention_flow as attention_flow
    from deeplimits.ensembles.transformers.particles import attention_layer as attention_layer
    from deeplimits.ensembles.transformers.particles import attention_layers as attention_layers
    from deeplimits.ensembles.transformers.particles import attention_matrix as attention_matrix
    from deeplimits.ensembles.transformers.particles import attention_until as attention_until
    from deeplimits.ensembles.transformers.particles import attention_velocity as attention_velocity
    from deeplimits.ensembles.transformers.particles import on_the_sphere as on_the_sphere
    from deeplimits.ensembles.transformers.pretrained import Encoder as Encoder
    from deeplimits.ensembles.transformers.pretrained import Encoding as Encoding
    from deeplimits.ensembles.transformers.pretrained import encode as encode
    from deeplimits.ensembles.transformers.pretrained import load_encoder as load_encoder
    from deeplimits.ensembles.transformers.pretrained import particle_layers as particle_layers
    from deeplimits.ensembles.transformers.pretrained import particle_path as particle_path
    from deeplimits.ensembles.transformers.random_layers import panel_layer as panel_layer
    from deeplimits.ensembles.transformers.random_layers import random_layer as random_layer
    from deeplimits.ensembles.transformers.random_layers import random_score as random_score
    from deeplimits.ensembles.transformers.random_layers import random_tokens as random_tokens
    from deeplimits.ensembles.transformers.random_layers import random_value as random_value
    from deeplimits.ensembles.transformers.random_layers import tokens_in_their_span as tokens_in_their_span
    from deeplimits.ensembles.transformers.residual import residual_network as residual_network
    from deeplimits.ensembles.transformers.word_pieces import WordPieces as WordPieces
