"""Losses of a network's outputs, and the forecasts that they make of the outputs of draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from temperance.checks import positive, shown
from temperance.data import Array

LOG_ROOT_TAU = float(0.5 * np.log(2 * np.pi))


@dataclass(frozen=True)
class OutputLoss:
    """Minus a log likelihood of outputs; the loss may have parameters of its own."""

    parameters: ClassVar[int] = 0  # of the loss itself, behind those of the network
    classes: ClassVar[bool] = False

    def value(self, outputs: Any, y: Any, own: Any) -> Any:
        """Return the loss of each row; ``own`` are the parameters of the loss."""
        raise NotImplementedError(f"{type(self).__name__} must have a value")

    def forecast(self, outputs: Any, own: Any) -> Any:
        """Return what a draw says of new responses, to be summed up over draws."""
        return outputs

    def summary(self, forecasts: Any) -> Any:
        """Return the forecast of all draws, from arrays (draws, n, ...)."""
        return forecasts.mean(axis=0), forecasts.std(axis=0)

    def wrong(self, outputs: Any, y: Any) -> Any:
        """Return whether the class of a draw is not y, if there are classes."""
        raise NotImplementedError(f"{type(self).__name__} has no classes")

    def check(self, y: Any, shape: Any) -> None:
        """Refuse responses that do not fit outputs of this shape, (1, ...)."""


@dataclass(frozen=True)
class SoftmaxLoss(OutputLoss):
    """Loss log sum_k exp(f_k) - f_y of logits f (n, K) and classes y."""

    classes: ClassVar[bool] = True

    def value(self, outputs: Any, y: Any, own: Any) -> Any:
        """Return the loss of each row."""
        chosen = jnp.take_along_axis(outputs, y.astype(jnp.int32)[:, None], axis=1)[:, 0]
        return jax.nn.logsumexp(outputs, axis=1) - chosen

    def forecast(self, outputs: Any, own: Any) -> Any:
        """Return probabilities (n, K)."""
        return jax.nn.softmax(outputs)

    def summary(self, forecasts: Array) -> Array:
        """Return the mean of the probabilities."""
        return forecasts.mean(axis=0)

    def wrong(self, outputs: Any, y: Any) -> Any:
        """Return whether another logit is the largest."""
        return outputs.argmax(axis=1) != y

    def check(self, y: Any, shape: Any) -> None:
        """Refuse labels other than 0 ... K - 1."""
        if len(shape) != 2:
            raise ValueError(
                f"apply must return logits (n, classes) for loss='softmax', got shape {shape}"
            )
        refuse_labels(y, shape[1])


@dataclass(frozen=True)
class LogisticLoss(OutputLoss):
    """Loss log(1 + exp(-(2 y - 1) f)) of log odds f (n,) or (n, 1) and classes 0 and 1."""

    classes: ClassVar[bool] = True

    def value(self, outputs: Any, y: Any, own: Any) -> Any:
        """Return the loss of each row."""
        return jax.nn.softplus((1 - 2 * y) * outputs.reshape(len(y)))

    def forecast(self, outputs: Any, own: Any) -> Any:
        """Return the probability of class 1."""
        return jax.nn.sigmoid(outputs.reshape(len(outputs)))

    def summary(self, forecasts: Array) -> Array:
        """Return the mean of the probabilities."""
        return forecasts.mean(axis=0)

    def wrong(self, outputs: Any, y: Any) -> Any:
        """Return whether the log odds have the other sign, or none."""
        return (2 * y - 1) * outputs.reshape(len(y)) <= 0

    def check(self, y: Any, shape: Any) -> None:
        """Refuse labels other than 0 and 1."""
        refuse_shape(shape, "logistic")
        refuse_labels(y, 2)


@dataclass(frozen=True)
class GaussianLoss(OutputLoss):
    """Loss (y - f)^2 / (2 s^2) + log s + log(2 pi) / 2, summed over the outputs of a row.

    With ``noise_scale=None``, log s is one more parameter.
    """

    noise_scale: float | None = None

    @property
    def parameters(self) -> int:  # type: ignore[override]
        """The log noise scale, unless it is known."""
        return int(self.noise_scale is None)

    def log_scale(self, own: Any) -> Any:
        """Return log s."""
        return own[0] if self.noise_scale is None else float(np.log(self.noise_scale))

    def value(self, outputs: Any, y: Any, own: Any) -> Any:
        """Return the loss of each row."""
        residuals = y.reshape(len(y), -1) - outputs.reshape(len(y), -1)
        log_scale = self.log_scale(own)
        each = 0.5 * (residuals * jnp.exp(-log_scale)) ** 2 + log_scale + LOG_ROOT_TAU
        return each.sum(axis=1)

    def forecast(self, outputs: Any, own: Any) -> Any:
        """Return the mean and the variance of a response."""
        mean = outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs
        return mean, jnp.full_like(mean, jnp.exp(2 * self.log_scale(own)))

    def summary(self, forecasts: Any) -> tuple[Array, Array]:
        """Return mean and standard deviation of a new response."""
        mean, variance = forecasts
        return mean.mean(axis=0), np.sqrt(mean.var(axis=0) + variance.mean(axis=0))

    def check(self, y: Any, shape: Any) -> None:
        """Refuse responses of another shape than the outputs."""
        if np.prod(np.shape(y)[1:]) != np.prod(shape[1:]):
            raise ValueError(
                f"apply must return as many numbers a row as y has, {np.shape(y)[1:]}, got "
                f"{tuple(shape[1:])}"
            )


@dataclass(frozen=True)
class GivenLoss(OutputLoss):
    """Loss function(outputs, y) -> number of the outputs and the response of one row."""

    function: Callable[[Any, Any], Any]

    def value(self, outputs: Any, y: Any, own: Any) -> Any:
        """Return the loss of each row."""
        return jax.vmap(self.function)(outputs, y)


def loss_from(loss: Any, noise_scale: float | None) -> OutputLoss:
    """Return the loss of a name or of a function."""
    if noise_scale is not None:
        positive("noise_scale", noise_scale)
        if loss != "gaussian":
            raise ValueError(f"noise_scale must be None unless loss is 'gaussian', got {loss!r}")
    named = {
        "softmax": SoftmaxLoss(),
        "logistic": LogisticLoss(),
        "gaussian": GaussianLoss(noise_scale),
    }
    if isinstance(loss, str) and loss in named:
        return named[loss]
    if callable(loss):
        return GivenLoss(loss)
    raise ValueError(
        f"loss must be one of {', '.join(map(repr, named))} or a function, got {shown(loss)}"
    )


def refuse_shape(shape: Any, name: str) -> None:
    """Refuse outputs of several numbers a row."""
    if np.prod(shape[1:]) != 1:
        raise ValueError(f"apply must return one number a row for loss={name!r}, got shape {shape}")


def refuse_labels(y: Any, count: int) -> None:
    """Refuse labels other than 0 ... count - 1."""
    labels = np.asarray(y, dtype=float)
    strange = labels[~((labels >= 0) & (labels < count) & (labels == np.floor(labels)))]
    if labels.ndim != 1 or len(strange):
        got = f"shape {labels.shape}" if labels.ndim != 1 else repr(float(strange[0]))
        raise ValueError(f"y must hold labels 0 ... {count - 1}, got {got}")
