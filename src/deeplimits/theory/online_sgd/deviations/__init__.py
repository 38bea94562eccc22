"""Large deviations of SGD with small steps: how unlikely it is to leave the gradient flow, for any loss and data."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.online_sgd.classical import deviation_rate as deviation_rate
    from deeplimits.theory.online_sgd.deviations.hamiltonian import Lagrangian as Lagrangian
    from deeplimits.theory.online_sgd.deviations.hamiltonian import hamiltonian_of_data as hamiltonian_of_data
    from deeplimits.theory.online_sgd.deviations.hamiltonian import lagrangian as lagrangian
    from deeplimits.theory.online_sgd.deviations.hamiltonian import path_action as path_action
    from deeplimits.theory.online_sgd.deviations.optimal_paths import Deviation as Deviation
    from deeplimits.theory.online_sgd.deviations.optimal_paths import deviation_to as deviation_to
    from deeplimits.theory.online_sgd.deviations.optimal_paths import tube_exit as tube_exit
