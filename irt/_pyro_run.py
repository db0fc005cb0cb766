"""Running Pyro: the guide and its climb, one chain, agreement of chains; nothing of the model itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from irt.data import Floats
from irt.laplace import Draws

_INSTALL = "methods svi and nuts need Pyro: pip install 'bridge-harness[irt]'"
WINDOW = 100  # steps of SVI between two looks at the ELBO


def packages() -> tuple[Any, Any]:
    """Import torch and Pyro, or say how to install them."""
    try:
        import pyro
        import torch
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(_INSTALL) from missing
    return torch, pyro


@contextmanager
def apart(seed: int) -> Iterator[None]:
    """Run with a seed, without a trace in torch's generator, Pyro's parameters or its checks."""
    torch, pyro = packages()
    with (
        torch.random.fork_rng(devices=[]),
        pyro.get_param_store().scope(),
        pyro.validation_enabled(is_validate=False),
    ):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reach the GPUs' too
        yield


def low_rank_guide(target: Callable[[], None], size: int, rank: int | None) -> Any:
    """Give Pyro's guide, set to the Laplace approximation: mean 0, SD 1, hardly any factor."""
    import torch
    from pyro.infer.autoguide import AutoLowRankMultivariateNormal, init_to_value

    guide: Any = AutoLowRankMultivariateNormal(
        target,
        init_loc_fn=init_to_value(values={"point": torch.zeros(size, dtype=torch.float64)}),
        init_scale=1.0,
        rank=rank or round(size**0.5),
    )
    guide()  # the first call sets the parameters up
    guide.scale = torch.ones(size, dtype=torch.float64)
    # exactly 0 would be a saddle
    guide.cov_factor.data.normal_(0, 0.1 / size**0.5)
    return guide


def climb(
    target: Callable[[], None], guide: Any, particles: int, rate: float, cap: int
) -> tuple[Floats, tuple[Any, ...], bool]:
    """Raise the ELBO until a window gains nothing; give its trace and the window's mean parameters."""
    from pyro.infer import SVI, Trace_ELBO

    optim = packages()[1].optim  # its names are made at run time
    loss = Trace_ELBO(num_particles=particles, vectorize_particles=True, max_plate_nesting=1)
    steps = SVI(target, guide, optim.Adam({"lr": rate}), loss)
    elbo: list[float] = []
    total: list[Any] = []
    while len(elbo) < max(3, -(-cap // WINDOW)) * WINDOW:  # whole windows
        if len(elbo) % WINDOW == 0:
            total = [0.0, 0.0, 0.0]
        elbo.append(-float(steps.step()))
        now = (guide.loc, guide.scale, guide.cov_factor)
        total = [s + x.detach() / WINDOW for s, x in zip(total, now, strict=True)]
        if len(elbo) % WINDOW == 0 and len(elbo) >= 3 * WINDOW and _level(elbo):
            break
    return np.array(elbo), tuple(total), _level(elbo)


def _level(elbo: list[float]) -> bool:
    """Whether the last window is not higher than the one before by twice the difference's error."""
    old, new = np.array(elbo[-2 * WINDOW : -WINDOW]), np.array(elbo[-WINDOW:])
    error = np.sqrt((old.var() + new.var()) / WINDOW)
    return bool(new.mean() - old.mean() <= 2 * error)


def chain(
    target: Callable[[], None], size: int, seed: int, warmup: int, draws: int
) -> tuple[dict[str, Any], int]:
    """Run one chain; give its draws by site and the number of divergent ones."""
    import torch
    from pyro.infer import MCMC, NUTS
    from pyro.infer.autoguide import init_to_value

    with apart(seed):
        start = {"point": torch.randn(size, dtype=torch.float64)}
        kernel = NUTS(target, init_strategy=init_to_value(values=start))
        run = MCMC(kernel, num_samples=draws, warmup_steps=warmup, disable_progbar=True)
        run.run()
        return run.get_samples(), len(run.diagnostics()["divergences"]["chain 0"])


def agreement(pool: Draws, chains: int) -> tuple[float, float]:
    """Worst split r-hat and smallest effective sample size, by Pyro."""
    import torch
    from pyro.ops.stats import effective_sample_size, split_gelman_rubin

    flat = np.hstack([pool.theta, np.log(pool.a), pool.d])
    grouped = torch.tensor(flat.reshape(chains, -1, flat.shape[1]))
    worst = float(split_gelman_rubin(grouped).max())
    return worst, float(effective_sample_size(grouped).min())
