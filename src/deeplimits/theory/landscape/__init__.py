"""Loss landscapes: Hessians and their classes, alignment, the edge of stability, catapults, neural collapse."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.landscape.catapult import CatapultPath as CatapultPath
    from deeplimits.theory.landscape.catapult import Phases as Phases
    from deeplimits.theory.landscape.catapult import catapult_end as catapult_end
    from deeplimits.theory.landscape.catapult import catapult_path as catapult_path
    from deeplimits.theory.landscape.catapult import catapult_time as catapult_time
    from deeplimits.theory.landscape.catapult import lazy_kernel_change as lazy_kernel_change
    from deeplimits.theory.landscape.catapult import learning_rate_phases as learning_rate_phases
    from deeplimits.theory.landscape.catapult import reduced_catapult as reduced_catapult
    from deeplimits.theory.landscape.stability_edge import growth_factor as growth_factor
    from deeplimits.theory.landscape.stability_edge import product_descent as product_descent
    from deeplimits.theory.landscape.stability_edge import product_flow as product_flow
    from deeplimits.theory.landscape.stability_edge import stability_threshold as stability_threshold
