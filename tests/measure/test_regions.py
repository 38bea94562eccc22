"""Exact regions: against dense evaluation that misses nothing, enumeration of signs, and across frameworks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from deeplimits.errors import ParameterError, TooCostly
from deeplimits.measure.adapters import open_model
from deeplimits.measure.adapters.switching import window_winners
from deeplimits.measure.regions import Matrices, line_pieces, plane_regions


class Small(torch.nn.Module):
    """Convolution, batch norm, a skip, pooling of both kinds, and a leaky end."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(1, 3, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(3)
        self.second = torch.nn.Conv2d(3, 3, 3, padding=1)
        self.last = torch.nn.Linear(3 * 2 * 2, 2)

    def forward(self, x):
        h = torch.nn.functional.relu(self.norm(self.first(x)), inplace=True)
        h = h + torch.nn.functional.leaky_relu(self.second(h), 0.1)
        h = torch.nn.functional.max_pool2d(h, 2)
        return self.last(torch.nn.functional.avg_pool2d(h, 1).flatten(1)).abs()


def small():
    torch.manual_seed(0)
    network = Small()
    with torch.no_grad():
        network.norm.running_mean.normal_()
        network.norm.running_var.uniform_(0.5, 2)
    return network


PATH = np.random.default_rng(0).normal(size=(3, 1, 4, 4)) * 2


def evaluated(network, points):
    with torch.no_grad():
        return network.eval().double()(torch.as_tensor(points)).numpy().reshape(len(points), -1)


def kinks_by_bisection(function, low, high, depth):
    """Intervals in which a function of one number is not straight, halved until they are short: a slow oracle."""
    found = [(low, high)]
    for _ in range(depth):
        parts = [part for a, b in found for part in ((a, (a + b) / 2), ((a + b) / 2, b))]
        a, b = np.array(parts).T
        share = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
        values = function((a[:, None] + (b - a)[:, None] * share).ravel()).reshape(len(parts), 5, -1)
        straight = values[:, :1] + share[None, :, None] * (values[:, -1:] - values[:, :1])
        bent = np.abs(values - straight).max(axis=(1, 2)) > 1e-11
        found = [part for part, one in zip(parts, bent, strict=True) if one]
    return found


def test_breakpoints_of_a_convolutional_network_against_dense_evaluation():
    network = small()
    found = line_pieces(network, PATH)
    assert found.residual < 1e-13
    assert len(found.breakpoints) > 20
    assert found.names[0] == "relu"
    exact = evaluated(network, PATH[0] + np.linspace(0, 1, 4001)[:, None, None, None] * (PATH[1] - PATH[0]))
    np.testing.assert_allclose(found.at(np.linspace(0, 1, 4001)), exact, atol=1e-12)

    def along(t):
        return evaluated(network, PATH[0] + t[:, None, None, None] * (PATH[1] - PATH[0]))

    # Every visible kink is where the function bends, and wherever it bends one was found.
    bends = kinks_by_bisection(along, 0.0, 1.0, 16)
    visible = found.breakpoints[found.visible & (found.breakpoints < 1)]
    for low, high in bends:
        assert np.any((visible > low - 1e-4) & (visible < high + 1e-4))
    for place in visible:
        assert any(low - 1e-4 < place < high + 1e-4 for low, high in bends)


def test_the_module_is_left_as_it_was():
    network = small().train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    line_pieces(network, PATH[:2])
    assert network.training
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert not network._forward_hooks
    assert not network._forward_pre_hooks


def test_frameworks_agree():
    random = np.random.default_rng(4)
    w, b, v = random.normal(size=(7, 3)), random.normal(size=7), random.normal(size=(2, 7))
    module = torch.nn.Sequential(torch.nn.Linear(3, 7), torch.nn.ReLU(), torch.nn.Linear(7, 2, bias=False)).double()
    with torch.no_grad():
        module[0].weight[:], module[0].bias[:], module[2].weight[:] = map(torch.as_tensor, (w, b, v))

    def apply(parameters, x):
        return jnp.maximum(x @ parameters["w"].T + parameters["b"][None], 0.0) @ parameters["v"].T

    parameters = {"w": w, "b": b, "v": v}
    path = random.normal(size=(3, 3)) * 3
    opened = open_model(module, torch.nn.MSELoss(), (path, np.zeros((3, 2))))
    every = [
        line_pieces(module, path),
        line_pieces(opened, path),
        line_pieces(apply, path, parameters=parameters),
        line_pieces(Matrices([w, v], [b, np.zeros(2)]), path),
    ]
    for other in every[1:]:
        np.testing.assert_allclose(other.breakpoints, every[0].breakpoints, atol=1e-12)
        np.testing.assert_allclose(other.outputs, every[0].outputs, atol=1e-12)
        assert other.crossings.tolist() == every[0].crossings.tolist()


def test_jax_networks_with_maxima_and_clipping():
    kernel = jnp.asarray(np.random.default_rng(6).normal(size=(2, 1, 3, 3)))

    def network(x):
        h = jax.lax.conv(x, kernel, (1, 1), "SAME")
        h = jax.nn.leaky_relu(h, 0.2)
        pooled = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return jnp.clip(pooled, -1.0, 1.5).reshape(x.shape[0], -1) + jnp.max(h, axis=(1, 2, 3))[:, None]

    found = line_pieces(network, PATH)
    t = np.linspace(0, 1, 801)
    exact = network(jnp.asarray(PATH[0] + t[:, None, None, None] * (PATH[1] - PATH[0])))
    np.testing.assert_allclose(found.at(t), exact, atol=1e-12)
    assert found.residual < 1e-13


def test_regions_of_a_plane_are_the_patterns_of_its_points():
    network = small()
    found = plane_regions(network, PATH, margin=0.3)
    assert found.residual < 1e-13
    np.testing.assert_allclose(found.areas.sum(), 1.6**2, rtol=1e-12)
    # Points drawn by chance fall into regions that were found, and the network there is the plane through its corners.
    random = np.random.default_rng(8)
    for place in random.integers(0, len(found.polygons), 40):
        polygon, values = found.polygons[place], found.outputs[place]
        weights = random.dirichlet(np.ones(len(polygon)))
        u, v = weights @ polygon
        exact = evaluated(network, (PATH[0] + u * (PATH[1] - PATH[0]) + v * (PATH[2] - PATH[0]))[None])
        np.testing.assert_allclose(exact[0], weights @ values, atol=1e-11)


def test_every_sign_pattern_of_a_network_is_one_region():
    """Two layers in a plane: as many regions as different patterns of signs on a fine grid, and each at its place."""
    random = np.random.default_rng(2)
    weights = [random.normal(size=(8, 2)), random.normal(size=(6, 8)), random.normal(size=(1, 6))]
    biases = [random.normal(size=8) / 2, random.normal(size=6) / 2, np.zeros(1)]
    network = Matrices(weights, biases)
    found = plane_regions(network, [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], margin=1.0)

    def patterns(points):
        return [tuple(row) for row in np.concatenate([one.values > 0 for one in network.run(points).switches], axis=1)]

    middles = patterns(np.stack([one.mean(axis=0) for one in found.polygons]))
    assert len(set(middles)) == len(middles)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 2, 700)] * 2), axis=-1).reshape(-1, 2)
    assert set(patterns(grid)) <= set(middles)


def test_the_sheet_network():
    w = [np.array([[1.0], [-1.0]]), np.array([[1.0, 1.0], [2.0, -1.0]]), np.ones((1, 2))]
    found = line_pieces(Matrices(w, [np.array([0.0, 1.0]), np.array([-1.5, -0.5]), np.zeros(1)]), [[-5.0], [5.0]])
    np.testing.assert_allclose(10 * found.breakpoints - 5, [-0.5, 0, 0.5, 1, 1.5], atol=1e-13)
    assert found.layers.tolist() == [1, 0, 1, 0, 1]


def test_units_that_are_zero_on_the_way_and_at_corners():
    # |x| at a corner of the path, and a unit that is zero throughout
    weights = [np.array([[1.0], [-1.0], [0.0]]), np.ones((1, 3))]
    found = line_pieces(Matrices(weights, [np.zeros(3), np.zeros(1)]), [[-1.0], [0.0], [1.0]])
    assert found.breakpoints.tolist() == [1.0]
    assert found.visible.tolist() == [True]
    assert found.crossings.tolist() == [2]


def test_winners_of_windows():
    x = np.random.default_rng(0).normal(size=(3, 2, 7, 6))
    pooled, where = torch.nn.functional.max_pool2d(torch.as_tensor(x), 3, stride=2, padding=1, return_indices=True)
    found = window_winners(x, (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1)), (1, 1, 1, 1))
    wanted = where.numpy() + 42 * np.arange(2)[None, :, None, None]
    np.testing.assert_array_equal(found, wanted.reshape(3, -1))
    assert pooled.numel() == found.size


class Written(torch.nn.Module):
    """Two ReLUs of one module, the second of what was written into a part of a tensor of zeros, and a mask."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 5)

    def forward(self, x):
        h = torch.relu(self.first(x))
        wide = torch.zeros(len(x), 7, dtype=x.dtype)
        wide[:, 1:6] = h - 0.3
        wide = torch.relu(wide)
        return wide.masked_fill(wide > 0.5, 0.5)


def test_what_is_written_into_a_part_of_a_tensor_is_seen():
    torch.manual_seed(1)
    network, path = Written(), np.outer([-4.0, 4.0], [1.0, -1.0, 0.5])
    found = line_pieces(network, path)
    assert found.names == ("relu", "relu (2)", "gt")
    assert found.crossings.min() > 0
    t = np.linspace(0, 1, 2001)
    np.testing.assert_allclose(found.at(t), evaluated(network, path[0] + t[:, None] * (path[1] - path[0])), atol=1e-13)


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        (torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)), "applies tanh to what"),
        (torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU()), "applies gelu"),
        (torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4)), "applies native_layer_norm"),
        (torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Softmax(1)), "applies _softmax"),
        (
            torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Unflatten(1, (2, 2)), torch.nn.InstanceNorm1d(2)),
            "instance norm",
        ),
        (lambda x: jnp.tanh(x), "applies tanh"),
        (lambda x: x * x, "a product of two such things"),
        (lambda x: jnp.where(x > 0, 1.0, 0.0), "it jumps or bends"),
        (lambda x: jnp.cumsum(x, axis=0)[:1] + x, "it jumps or bends"),
    ],
    ids=["tanh", "gelu", "layer norm", "softmax", "instance norm", "jax tanh", "square", "step", "mixes"],
)
def test_what_is_not_piecewise_linear_is_refused_by_name(network, sentence):
    path = [[-1.0, 2.0, 0.3], [1.0, -1.0, 0.2]]
    with pytest.raises(ParameterError, match=sentence):
        line_pieces(network, path)


def test_bad_paths_planes_and_networks():
    network = Matrices([np.ones((2, 3)), np.ones((1, 2))], [np.zeros(2), np.zeros(1)])
    with pytest.raises(ParameterError, match="at least two corners"):
        line_pieces(network, [[1.0, 2.0, 3.0]])
    with pytest.raises(ParameterError, match="same corner twice"):
        line_pieces(network, [[1.0, 2.0, 3.0]] * 2)
    with pytest.raises(ParameterError, match=r"path\[0, 1\] = nan"):
        line_pieces(network, [[1.0, float("nan"), 3.0], [0.0, 0.0, 0.0]])
    with pytest.raises(ParameterError, match="takes 3"):
        line_pieces(network, [[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(ParameterError, match="lie on a line"):
        plane_regions(network, [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    with pytest.raises(ParameterError, match="three inputs"):
        plane_regions(network, [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    with pytest.raises(ParameterError, match="weights\\[1\\]"):
        Matrices([np.ones((2, 3)), np.ones((1, 3))], [np.zeros(2), np.zeros(1)])
    with pytest.raises(ParameterError, match="is a str"):
        line_pieces("network", [[0.0], [1.0]])
    random = np.random.default_rng(0)
    wide = Matrices([random.normal(size=(50, 2)), np.ones((1, 50))], [random.normal(size=50), np.zeros(1)])
    with pytest.raises(TooCostly, match="more than 10 regions"):
        plane_regions(wide, [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], most=10)
    with pytest.raises(TooCostly, match="more than 5 breakpoints"):
        line_pieces(wide, [[-9.0, 0.0], [9.0, 1.0]], most=5)
    training = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    opened = open_model(
        training, torch.nn.MSELoss(), (np.ones((4, 3)) * np.arange(4)[:, None], np.zeros((4, 4))), mode="train"
    )
    with pytest.raises(ParameterError, match="evaluation mode"):
        line_pieces(opened, [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
