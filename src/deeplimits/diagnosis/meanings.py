"""What each finding is about, for a reader who knows how to train a network and none of the theory."""

from typing import NamedTuple


class Meaning(NamedTuple):
    """A finding's title, what it is and why it matters, and how to read its picture."""

    title: str
    what: str
    picture: str = ""


MEANINGS = {
    "cannot-be-measured": Meaning(
        "The network cannot be measured",
        "Everything below needs the network to turn a batch into a loss, a finite number, that can be "
        "differentiated.",
    ),
    "broken-parameters": Meaning(
        "Weights that are no numbers",
        "A single weight that is NaN or infinite spreads to every output and every gradient.",
    ),
    "inputs": Meaning(
        "The inputs",
        "How many directions the data really use, and whether they are centred. Data whose mean is far larger than"
        " their variation have one dominant direction, which alone limits the learning rate.",
        "Each point is the variance of the data along one direction (a principal component), the largest first. A "
        "steep fall means few directions.",
    ),
    "contradictions": Meaning(
        "Equal inputs with different labels",
        "No network can be right on both of two samples that are equal and labelled differently.",
    ),
    "repeats": Meaning(
        "Samples that occur more than once",
        "Repeated samples weigh more than others, and make a test look better when they are on both sides of a "
        "split.",
    ),
    "balance": Meaning(
        "Sizes of the classes",
        "A class with very few samples is easily ignored: getting it wrong costs the mean loss little.",
    ),
    "architecture": Meaning(
        "What the network was read to be",
        "The operations seen in one pass. Predictions follow the signal through all operations of which theory "
        "knows a law; behind any other they start again from what was measured there.",
    ),
    "weight-scale": Meaning(
        "The scale of the weights",
        "For every activation there is one variance of the weights at which signals neither grow nor fade with "
        "depth (for ReLU 2/fan-in, known as He's initialization). Away from it deep networks hardly train.",
        "Each point is the variance of a layer's weights divided by the right one. They should be near the line at"
        " 1.",
    ),
    "signal-size": Meaning(
        "The size of signals through the depth",
        "Signals that grow or shrink at every layer end up huge or vanishing, and with them the outputs and "
        "gradients.",
        "Points: the mean square of the signal after each layer. Line: what theory expects of layers of these "
        "widths and weights; bars: how far chance may take it. A level line is healthy; a slope on this "
        "logarithmic scale is exponential growth or decay.",
    ),
    "gradient-size": Meaning(
        "The size of gradients through the depth",
        "If gradients are far smaller in the first layers than in the last, the first ones hardly learn; if they "
        "are far larger, one learning rate cannot serve both.",
        "Points: the squared gradient at each layer, beside that at the last. Line: what theory expects. A level "
        "line is healthy.",
    ),
    "depth-to-width": Meaning(
        "Luck of the draw",
        "In networks that are deep and narrow, gradients differ much from one random start to the next. What "
        "counts is the depth divided by the width.",
    ),
    "depth-scale": Meaning(
        "Telling inputs apart through the depth",
        "With wrong weights a deep network maps all inputs to nearly the same point (ordered), or similar inputs "
        "to unrelated ones (chaotic). In both cases what distinguishes inputs is lost after some number of layers.",
        "Points: how alike two samples are (the mean cosine of their angle) after each layer. Line: what theory "
        "expects of weights of these variances. Rising to 1, all inputs become the same.",
    ),
    "idle-units": Meaning(
        "Dead units",
        "A ReLU unit whose input is negative for every sample passes nothing on and gets no gradient: it cannot "
        "come back. Some are idle by chance alone, the more the more alike samples are to the layer.",
        "Points: the share of each layer's units that pass nothing on. With bars: what chance makes of these samples.",
    ),
    "saturated-units": Meaning(
        "Saturated units",
        "Where an activation like tanh is flat its slope is nearly zero, and no gradient gets through.",
        "Points: the share of each layer's units and samples without a slope. With bars: what theory expects of "
        "weights of these variances.",
    ),
    "output-size": Meaning(
        "The size of the outputs",
        "Outputs (logits) of a fresh classifier should be of order one. Large ones mean that it is certain of "
        "arbitrary answers, and begins by unlearning them.",
    ),
    "residual-branches": Meaning(
        "Balance of the residual branches",
        "In a residual network every branch adds to a stream. One branch far larger than the stream drowns all "
        "that came before it.",
        "Points: the size of what each branch adds, relative to the stream. Line: what theory expects of its "
        "weights.",
    ),
    "zero-weights": Meaning(
        "Layers of zeros",
        "A layer all of whose weights are zero passes no signal forward and no gradient back.",
    ),
    "spectra-of-weights": Meaning(
        "What training has written into the weights",
        "The singular values of a matrix of independent random numbers fill a known range, whatever the numbers "
        "(the law of Marchenko and Pastur). Values outside it are structure: something was learned, or the layer "
        "was not initialized at random. The p-value is the chance of such a value without any structure.",
        "Histogram: the squared singular values of one layer. Curve: those of independent random weights. What "
        "lies to the right of the vertical line was learned.",
    ),
    "step-size": Meaning(
        "The learning rate",
        "In the direction in which the loss is most curved, too large a step overshoots and comes out farther away"
        " than it went in. The largest eigenvalue of the Hessian (the sharpness) says how large is too large for "
        "this optimizer.",
        "By how much an error in the most curved direction is multiplied in each step, for any learning rate. "
        "Above the line at 1 errors grow: unstable. The vertical line is the learning rate in use.",
    ),
    "catapult": Meaning(
        "Warm-up and the catapult",
        "Just above the stable learning rate training need not fail: in wide networks the loss first shoots up and"
        " then comes down in a flatter place. The window for that ends at about twice the stable step of gradient "
        "descent.",
    ),
    "layer-rates": Meaning(
        "Do all layers learn?",
        "How much one step changes what leaves each layer, relative to its size. If layers differ a lot, some of "
        "them stand still while others are near the edge; learning rates by layer (maximal update) make them "
        "alike.",
        "Each point is one layer; all on one level would be learning alike.",
    ),
    "noise-scale": Meaning(
        "The batch size that pays",
        "Gradients of small batches are noisy. Up to the noise scale, also called the critical batch size, "
        "doubling the batch nearly halves the number of steps; beyond it, it saves little.",
        "How many steps and how many samples are needed in all, relative to the least possible, for any batch "
        "size.",
    ),
    "stationarity": Meaning(
        "Is training still moving?",
        "At a constant learning rate SGD falls until the noise of its batches raises the loss as much in each "
        "step as following the gradient lowers it. Then only a smaller step or a larger batch helps.",
        "For each step of a short run on a copy: how much it takes from the loss by following the gradient, and how "
        "much it puts back by overshooting and by the noise of the batch. Where they meet training stands still.",
    ),
    "regime": Meaning(
        "Lazy or rich training",
        "A very wide network can train without changing its features: it only reweights those it was born with "
        "(lazy, and predictable by its tangent kernel). If the kernel changes, features are learned (rich).",
    ),
    "kernel-regression": Meaning(
        "The loss as the linearized network would have it",
        "If training were lazy the loss would follow a curve that is known from the start. The distance from it is"
        " the part that learning features contributes.",
        "Line: the loss predicted by the network's linearization. Points: the loss of the network itself.",
    ),
    "kernel-alignment": Meaning(
        "Does the kernel know the labels?",
        "The tangent kernel says which samples learn together. If samples of one class do, the kernel is aligned "
        "with the labels and training is fast.",
    ),
    "outliers": Meaning(
        "Directions that stand out of the curvature",
        "Most directions of a network's loss are nearly flat, a few are steep. For k classes about k − 1 to k "
        "steep ones are usual.",
        "The largest eigenvalues of the Hessian in order. Those above the line stand out of the rest.",
    ),
    "hessian-spectrum": Meaning(
        "The curvature of the loss in all directions",
        "How many directions of the parameters are flat, how many curve up, and how many down.",
        "How eigenvalues of the Hessian are distributed, on a logarithmic scale: the large peak at zero are flat "
        "directions.",
    ),
    "negative-curvature": Meaning(
        "Ways down that are still open",
        "Where the loss curves downwards a direction leads farther down. At a minimum there is none.",
    ),
    "class-shares": Meaning(
        "Where the curvature comes from",
        "Curvature splits into what distinguishes classes, what confuses pairs of them, and what differs between "
        "samples of one class. Early in training differences within classes are most of it; later the classes "
        "dominate.",
        "The share of each part in the sum of all curvature.",
    ),
    "token-clustering": Meaning(
        "Do the tokens stay different?",
        "Attention pulls the tokens of a sequence together. After many layers they may become the same, and "
        "nothing is left to attend to.",
        "Points: how alike two tokens of a sequence are after each block. Line: tokens that see all others alike.",
    ),
    "neural-collapse": Meaning(
        "How far the classes have collapsed",
        "Trained long enough, a classifier maps all samples of a class to one point, and these points as far from "
        "each other as they can be (neural collapse). All four numbers then vanish.",
        "The four measures: all come down to the line at 0 where collapse is complete.",
    ),
    "linear-probe": Meaning(
        "A linear probe on the last features",
        "How well a linear fit to the features before the last layer does on samples that it has not seen, and "
        "which penalty (ridge) is best. Without one the error peaks where there are as many samples as features.",
        "Error on new samples for any ridge. Line: predicted from the training error alone. Points: measured by "
        "leaving out samples.",
    ),
}  # fmt: skip
"""By the name of the finding."""

UNKNOWN = Meaning("", "")


def of(name: str) -> Meaning:
    """What a finding of this name is about."""
    found = MEANINGS.get(name, UNKNOWN)
    return found if found.title else found._replace(title=name.replace("-", " ").capitalize())
