"""The programs of a network of JAX and its loss, each compiled once for each shape of its arrays."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from deeplimits.measure.adapters.reductions import reduced, single
from deeplimits.numerics.precision import full_products

Leaves = tuple[jax.Array, ...]
SHARED = ("evaluate", "wide_outputs", "run", "raw", "jacobians")
"""Programs into which neither the reduction nor the precision of the loss enters."""


def compiled(program: Callable[..., Any], *, static: int | None = None) -> Callable[..., Any]:
    return jax.jit(full_products(program), static_argnums=static)


class Programs:
    """The compiled programs of one network and loss, shared by all parameters, data and choices of names."""

    def __init__(
        self,
        apply: Callable[[Any, Any], Any],
        loss: Callable[[Any, Any], Any],
        tree: Any,
        reduction: str = "mean",
        exact: bool = False,
    ):
        self.apply, self.loss, self.tree, self.reduction, self.exact = apply, loss, tree, reduction, exact
        self.owner: Any = None
        """The object that has this function, where it is one of the house's networks."""

    def renewed(self, *, reduction: str | None = None, exact: bool | None = None) -> "Programs":
        """Programs of the same network; compiled anew is what depends on what is changed."""
        found = Programs(
            self.apply, self.loss, self.tree, reduction or self.reduction, self.exact if exact is None else exact
        )
        found.owner = self.owner
        vars(found).update({name: made for name, made in vars(self).items() if name in SHARED})
        return found

    def outputs(self, leaves: Leaves, rest: Leaves, places: tuple[int, ...], x: Any, wide: Any = None) -> jax.Array:
        """Outputs as a function of the leaves at `places`; all other leaves are in `rest`.

        Where the values in float64 are given, `wide`, the outputs have these, and their own derivatives.
        """
        full: list[Any] = list(rest)
        for place, leaf in zip(places, leaves, strict=True):
            full.insert(place, leaf)
        found = jnp.asarray(self.apply(jax.tree.unflatten(self.tree, full), x))
        if wide is None:
            return found
        found = found.astype(wide.dtype)
        return found + jax.lax.stop_gradient(wide - found)

    def losses(self, z: jax.Array, y: Any) -> jax.Array:
        """The loss of every sample."""
        if self.reduction == "none":
            return jnp.asarray(self.loss(z, y)).astype(z.dtype)
        each = jax.vmap(lambda one, target: jnp.reshape(self.loss(*single(one, target)), ()))(z, y)
        return each.astype(z.dtype)

    def total(self, z: jax.Array, y: Any, share: jax.Array, weights: jax.Array | None) -> jax.Array:
        """F as a function of the outputs."""
        if weights is not None:
            return jnp.sum(weights * self.losses(z, y))
        value = jnp.asarray(self.loss(z, y)).astype(z.dtype)
        return share * jnp.reshape(reduced(value, self.reduction, z.shape[0], jnp.mean), ())

    # Each program is a function of arrays alone, compiled once for each shape.

    @functools.cached_property
    def evaluate(self):
        return compiled(self.outputs, static=2)

    @functools.cached_property
    def wide_outputs(self):  # in float64
        def program(leaves, rest, places, x):
            leaves, rest, x = jax.tree.map(_wide, (leaves, rest, x))
            return self.outputs(leaves, rest, places, x)

        return compiled(program, static=2)

    @functools.cached_property
    def linear_outputs(self):
        def program(leaves, rest, places, x, wide):
            return jax.linearize(lambda where: self.outputs(where, rest, places, x, wide), leaves)[1]

        return compiled(program, static=2)

    @functools.cached_property
    def pullback(self):
        def program(leaves, rest, places, x, wide):
            return jax.vjp(lambda where: self.outputs(where, rest, places, x, wide), leaves)[1]

        return compiled(program, static=2)

    @functools.cached_property
    def gradient(self):
        return compiled(self._gradient, static=2)

    def _gradient(self, leaves, rest, places, x, wide, y, share, weights):
        return jax.grad(lambda where: self.total(self.outputs(where, rest, places, x, wide), y, share, weights))(leaves)

    @functools.cached_property
    def linear_gradient(self):
        def program(leaves, rest, places, x, wide, y, share, weights):
            return jax.linearize(lambda v: self._gradient(v, rest, places, x, wide, y, share, weights), leaves)[1]

        return compiled(program, static=2)

    @functools.cached_property
    def linear_residual(self):
        def program(leaves, rest, places, x, wide, y, share, weights):
            z = self.outputs(leaves, rest, places, x, wide)
            slopes = jax.grad(lambda u: self.total(u, y, share, weights))(z)

            def gradient(where):
                return jax.grad(lambda w: jnp.sum(slopes * self.outputs(w, rest, places, x, wide)))(where)

            return jax.linearize(gradient, leaves)[1]

        return compiled(program, static=2)

    @functools.cached_property
    def run(self):  # applies a linearization
        return compiled(lambda linear, *vectors: linear(*vectors))

    @functools.cached_property
    def in_outputs(self):  # F from the outputs
        return compiled(self.total)

    @functools.cached_property
    def raw(self):  # the user's loss as it is
        return compiled(lambda z, y: self.loss(z, y))

    @functools.cached_property
    def each(self):
        return compiled(self.losses)

    @functools.cached_property
    def bend(self):
        def program(z, y, share, weights, u):
            return jax.jvp(jax.grad(lambda w: self.total(w, y, share, weights)), (z,), (u,))[1]

        return compiled(program)

    @functools.cached_property
    def in_outputs_with_slopes(self):
        return jax.jit(jax.value_and_grad(self.total))

    @functools.cached_property
    def slopes(self):
        return compiled(jax.grad(lambda z, y: jnp.sum(self.losses(z, y))))

    @functools.cached_property
    def jacobians(self):
        def program(leaves, rest, places, x, wide):
            def one(single_x):
                expanded = jax.tree.map(lambda array: array[None], single_x)
                found = jax.jacrev(lambda where: self.outputs(where, rest, places, expanded)[0].ravel())(leaves)
                return jnp.concatenate([part.reshape(part.shape[0], -1) for part in found], axis=1)

            return jax.vmap(one)(x)

        return compiled(program, static=2)


def _wide(array: jax.Array) -> jax.Array:
    return array.astype(jnp.float64) if jnp.issubdtype(array.dtype, jnp.floating) else array
