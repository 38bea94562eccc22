"""How dual activations are computed: closed forms, and quadrature for everything else."""
