"""Noise levels and samplers in float64, from their papers or as ComfyUI has them: references of
make_diffusion_goldens.py for what diffusers lacks. A sampler takes a table of levels with the made-up
model, x, the levels, and normal(), which draws fresh noise."""

import math

import numpy as np
from scipy import integrate


def karras(low, high, n):
    ramp = np.linspace(0, 1, n)
    return (high ** (1 / 7) + ramp * (low ** (1 / 7) - high ** (1 / 7))) ** 7


class Table:
    """The noise levels of SD 1.5, in float64."""

    def __init__(self):
        betas = np.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2
        alphas = np.cumprod(1 - betas)
        self.log_sigmas = 0.5 * np.log((1 - alphas) / alphas)

    def time(self, sigma):
        return float(np.interp(math.log(sigma), self.log_sigmas, np.arange(1000)))

    def karras(self, n):
        low, high = math.exp(self.log_sigmas[0]), math.exp(self.log_sigmas[-1])
        return [*karras(low, high, n), 0.0]

    def level(self, ratio):
        return ratio

    def down(self, now, following, eta):
        return split(now, following, eta)[0]

    def up(self, x, now, following, normal):
        return x + normal() * math.sqrt(following**2 - now**2)

    def denoised(self, x, sigma, factor=1.0):
        scaled = x / math.sqrt(1 + sigma**2)
        return x - sigma * factor * (np.tanh(0.6 * scaled) + 0.1 * math.sin(self.time(sigma) / 150))

    most = math.inf

    def alpha(self, sigma):
        return 1.0

    def half_log_snr(self, sigma):
        return -math.log(sigma)

    def sigma_at(self, half_log_snr):
        return math.exp(-half_log_snr)

    def with_signal(self, sigmas):
        return sigmas

    def share(self, part):
        return math.exp(np.interp((1 - part) * 999, np.arange(1000), self.log_sigmas))

    def halves(self, x, sigma, scale=1.5):
        return guided(self, x, sigma, scale)


class Flow:
    """The noise levels of a flow of shift 3: x = (1 - sigma) picture + sigma noise."""

    def karras(self, n):
        return [*karras(0.003 / 1.002, 1.0, n), 0.0]

    def level(self, ratio):
        return ratio / (1 + ratio)

    def down(self, now, following, eta):
        return following * (1 + (following / now - 1) * eta)

    def up(self, x, now, following, normal):
        keep = (1 - following) / (1 - now)
        return keep * x + normal() * math.sqrt(following**2 - (keep * now) ** 2)

    def denoised(self, x, sigma, factor=1.0):
        return x - sigma * factor * (np.tanh(0.6 * x) + 0.1 * math.sin(1000 * sigma / 150))

    most = 0.9999

    def alpha(self, sigma):
        return 1 - sigma

    def half_log_snr(self, sigma):
        return math.log((1 - sigma) / sigma) if sigma < 1 else -math.inf

    def sigma_at(self, half_log_snr):
        return 1 / (1 + math.exp(half_log_snr))

    def with_signal(self, sigmas):
        return [min(sigmas[0], self.share(1e-4)), *sigmas[1:]]

    def share(self, part):
        return 3 * (1 - part) / (1 + 2 * (1 - part))

    def halves(self, x, sigma, scale=1.5):
        return guided(self, x, sigma, scale)


def guided(table, x, sigma, scale):
    """The guided picture and the unguided half of it."""
    unguided = table.denoised(x, sigma, 0.9)
    return unguided + scale * (table.denoised(x, sigma) - unguided), unguided


def split(now, following, eta=1.0):
    up = min(following, eta * math.sqrt(following**2 * (now**2 - following**2) / now**2))
    return math.sqrt(following**2 - up**2), up


def two_s(table, x, sigmas, normal):
    for now, following in zip(sigmas, sigmas[1:]):
        d = table.denoised(x, now)
        down, up = split(now, following)
        if down == 0:
            x = x + (x - d) / now * (down - now)
            continue
        t, target = -math.log(now), -math.log(down)
        h = target - t
        s = t + h / 2
        middle = math.exp(t - s) * x - math.expm1(-h / 2) * d
        x = math.exp(-h) * x - math.expm1(-h) * table.denoised(middle, math.exp(-s))
        x = x + normal() * up
    return x


def sde(table, x, sigmas, normal):
    for now, following in zip(sigmas, sigmas[1:]):
        d = table.denoised(x, now)
        if following == 0:
            x = x + (x - d) / now * (following - now)
            continue
        t, target = -math.log(now), -math.log(following)
        half = math.exp(-(t + target) / 2)
        down, up = split(now, half)
        path = normal() * math.sqrt(now - half)  # Brownian motion from `now` to `half`
        middle = down / now * x - math.expm1(math.log(down / now)) * d
        middle = middle + path / math.sqrt(now - half) * up
        d = table.denoised(middle, half)
        down, up = split(now, following)
        path = path + normal() * math.sqrt(half - following)
        x = down / now * x - math.expm1(math.log(down / now)) * d
        x = x + path / math.sqrt(now - following) * up
    return x


def three_m(table, x, sigmas, normal):
    earlier, steps = [], []  # newest first
    for now, following in zip(sigmas, sigmas[1:]):
        d = table.denoised(x, now)
        if following == 0:
            x = d
            continue
        h = math.log(now / following)
        whole = 2 * h
        x = math.exp(-whole) * x - math.expm1(-whole) * d
        phi2 = math.expm1(-whole) / whole + 1
        if len(earlier) >= 2:
            r0, r1 = steps[0] / h, steps[1] / h
            first = (d - earlier[0]) / r0
            second = (earlier[0] - earlier[1]) / r1
            slope = first + (first - second) * r0 / (r0 + r1)
            x = x + phi2 * slope - (phi2 / whole - 0.5) * (first - second) / (r0 + r1)
        elif earlier:
            x = x + phi2 * (d - earlier[0]) / (steps[0] / h)
        x = x + normal() * following * math.sqrt(-math.expm1(-2 * h))
        earlier, steps = [d, *earlier], [h, *steps]
    return x


def cfg_pp(table, x, sigmas, normal, eta):
    scale = 1.5
    for now, following in zip(sigmas, sigmas[1:]):
        guided_half, unguided = table.denoised(x, now), table.denoised(x, now, 0.9)
        d = unguided + scale * (guided_half - unguided)
        down, up = split(now, following, eta)
        x = d + (x - unguided) / now * down
        if up > 0:
            x = x + normal() * up
    return x


def churned(table, x, sigmas, normal, options, order):
    """Karras et al. 2022, algorithm 2: Euler's step, Heun's, or one by the middle ("dpm2")."""
    for now, following in zip(sigmas, sigmas[1:]):
        fresh = normal()
        if options.get("low", 0) <= now <= options.get("high", math.inf):
            gamma = min(options["amount"] / (len(sigmas) - 1), math.sqrt(2) - 1)
            x = x + fresh * math.sqrt((now * (1 + gamma)) ** 2 - now ** 2)
            now *= 1 + gamma
        slope = (x - table.denoised(x, now)) / now
        if order == "euler" or following == 0:
            x = x + slope * (following - now)
        elif order == "heun":
            ahead = x + slope * (following - now)
            there = (ahead - table.denoised(ahead, following)) / following
            x = x + (slope + there) / 2 * (following - now)
        else:
            middle = math.sqrt(now * following)
            between = x + slope * (middle - now)
            x = x + (between - table.denoised(between, middle)) / middle * (following - now)
    return x


def restart(table, x, sigmas, normal):
    """Xu et al. 2023 with the restarts that AUTOMATIC1111 chooses by the number of steps."""
    steps = len(sigmas) - 1
    times, length = (0, 0) if steps < 20 else (1, 9) if steps < 36 else (2, steps // 4)
    if times > 0:
        sigmas = [*karras(sigmas[-2], sigmas[0], steps - times * length), 0.0]
    low, high = (min(range(len(sigmas)), key=lambda i: abs(sigmas[i] - table.level(ratio)))
                 for ratio in (0.1, 2))
    again = karras(sigmas[low], sigmas[high], length + 1)
    pairs = [*zip(sigmas[:low], sigmas[1:low + 1]), *list(zip(again, again[1:])) * times,
             *zip(sigmas[low:], sigmas[low + 1:])]
    assert len(pairs) == steps
    at = sigmas[0]
    for now, following in pairs:
        if now > 1.001 * at:
            x = table.up(x, at, now, normal)
        slope = (x - table.denoised(x, now)) / now
        ahead = x + slope * (following - now)
        if following > 0:
            there = (ahead - table.denoised(ahead, following)) / following
            ahead = x + (slope + there) / 2 * (following - now)
        x, at = ahead, following
    return x


class Solver:
    """DPM-Solver (Lu et al. 2022a) in t = -log(sigma), on the direction (x - picture) / sigma."""

    def __init__(self, table, x, now):
        self.table, self.x, self.now, self.calls = table, x, now, 0
        self.d = self.direction(x, now)

    def direction(self, x, sigma):
        self.calls += 1
        return (x - self.table.denoised(x, sigma)) / sigma

    def first(self, to):
        return self.x - to * math.expm1(math.log(self.now / to)) * self.d

    def at_part(self, to, part):
        there = math.exp(math.log(self.now) - part * math.log(self.now / to))
        self.early, self.part = self.direction(self.first(there), there), part

    def second(self, to):
        factor = to / (2 * self.part) * math.expm1(math.log(self.now / to))
        return self.first(to) - factor * (self.early - self.d)

    def third(self, to):
        h, share = math.log(self.now / to), 2 / 3
        there = math.exp(math.log(self.now) - share * h)
        factor = there * share / self.part * (math.expm1(share * h) / (share * h) - 1)
        late = self.direction(self.first(there) - factor * (self.early - self.d), there)
        return self.first(to) - to / share * (math.expm1(h) / h - 1) * (late - self.d)


def fresh_part(table, now, to, least, eta):
    """Where the straight part of a step ends, and what adds the noise that lacks then."""
    down = max(table.down(now, to, eta), least)
    return down, lambda x, normal: table.up(x, down, to, normal) if down < to else x


def dpm_fast(table, x, sigmas, normal, eta):
    calls, least = len(sigmas) - 1, sigmas[-2]
    orders = [3] * (calls // 3) + [calls % 3] if calls % 3 else [3] * (calls // 3 - 1) + [2, 1]
    levels = np.exp(np.linspace(math.log(sigmas[0]), math.log(least), len(orders) + 1))
    for order, now, to in zip(orders, levels, levels[1:]):
        down, noised = fresh_part(table, now, to, least, eta)
        solver = Solver(table, x, now)
        if order > 1:
            solver.at_part(down, 1 / 3 if order == 3 else 1 / 2)
        x = [solver.first, solver.second, solver.third][order - 1](down)
        assert solver.calls == order
        x = noised(x, normal)
    return x


def dpm_adaptive(table, x, sigmas, normal, eta, told):
    now, least, length, before = sigmas[0], sigmas[-2], 0.05, x
    told["calls"] = 0
    while math.log(now / least) > 1e-5:
        to = max(least, now * math.exp(-length))
        down, noised = fresh_part(table, now, to, least, eta)
        solver = Solver(table, x, now)
        solver.at_part(down, 1 / 3)
        low, high = solver.second(down), solver.third(down)
        told["calls"] += solver.calls
        tolerated = np.maximum(0.0078, 0.05 * np.maximum(abs(low), abs(before)))
        error = np.sqrt(np.mean(((low - high) / tolerated) ** 2))
        factor = 1 + math.atan((1 / (error + 1e-8)) ** (1 / (1.5 if eta > 0 else 3)) - 1)
        length *= factor
        if factor >= 0.81:
            before, x, now = low, noised(high, normal), to
    return x


def ipndm(table, x, sigmas, normal, uneven):
    """ComfyUI's: Adams-Bashforth up to order 4, by the polynomial through the last directions; of
    even steps as if those before were as long as this one. The last step goes to the picture."""
    slopes = []
    for i, (now, following) in enumerate(zip(sigmas, sigmas[1:])):
        picture = table.denoised(x, now)
        slopes = [(x - picture) / now, *slopes][:4]
        if following == 0:
            return picture
        h = following - now
        order = len(slopes)
        points = [(sigmas[i - j] - now) / h if uneven else -j for j in range(order)]
        for j, slope in enumerate(slopes):
            others = [p for k, p in enumerate(points) if k != j]
            line = np.poly1d(others, r=True) if others else np.poly1d([1.0])
            area = (line / np.prod([points[j] - p for p in others])).integ()
            x = x + h * (area(1) - area(0)) * slope
    return x


def res_multistep(table, x, sigmas, normal, eta=0.0, cfg_pp=False):
    """Zhang et al. 2023 (RES) as ComfyUI has it, in -log(sigma). With eta, each step ends lower, and
    fresh noise makes up for it. CFG++: the unguided picture, but the guided one where it lands."""
    before = None
    for i, (now, following) in enumerate(zip(sigmas, sigmas[1:])):
        guided, picture = table.halves(x, now) if cfg_pp else [table.denoised(x, now)] * 2
        down = table.down(now, following, eta) if following > 0 and eta > 0 else following
        if before is None or down == 0:
            x = table.alpha(down) * (guided - picture) + x + (x - picture) / now * (down - now)
        else:
            h = math.log(now) - math.log(down)
            c2 = (math.log(reached) - math.log(sigmas[i - 1])) / h
            phi1 = math.expm1(-h) / -h
            phi2 = (phi1 - 1) / -h
            x = x + table.alpha(now) * (guided - picture)
            x = math.exp(-h) * x + h * ((phi1 - phi2 / c2) * picture + phi2 / c2 * before)
        if down < following:
            x = table.up(x, down, following, normal)
        before, reached = picture, down
    return x


def gradient_estimation(table, x, sigmas, normal, cfg_pp=False):
    """Permenter and Yuan 2024 as ComfyUI has it, with gamma = 2."""
    before = None
    for now, following in zip(sigmas, sigmas[1:]):
        guided, picture = table.halves(x, now) if cfg_pp else [table.denoised(x, now)] * 2
        slope = (x - picture) / now
        if following == 0:
            return guided
        x = x + (slope if before is None else 2 * slope - before) * (following - now)
        x = x + table.alpha(following) * (guided - picture)
        before = slope
    return x


def two_m_cfg_pp(table, x, sigmas, normal):
    before = None
    for i, (now, following) in enumerate(zip(sigmas, sigmas[1:])):
        guided, picture = table.halves(x, now)
        x = table.alpha(following) * guided + (x - table.alpha(now) * picture) / now * following
        if before is not None and following > 0:
            h = table.half_log_snr(following) - table.half_log_snr(now)
            last = table.half_log_snr(now) - table.half_log_snr(sigmas[i - 1])
            x = x - table.alpha(following) * math.expm1(-h) * h / (2 * last) * (guided - before)
        before = picture
    return x


def two_s_cfg_pp(table, x, sigmas, normal):
    for now, following in zip(sigmas, sigmas[1:]):
        guided, picture = table.halves(x, now)
        down = table.down(now, following, 1.0) if following > 0 else 0
        if down > 0:
            # A flow that begins without signal goes by a level a little later.
            parts = [table.half_log_snr(min(each, table.most)) for each in (now, down)]
            between = table.sigma_at(sum(parts) / 2)
            middle = between / now * x + (1 - between / now) * picture
            _, picture_there = table.halves(middle, between)
            x = table.up(down / now * x + (1 - down / now) * picture_there, down, following, normal)
        else:
            x = picture
        x = x + table.alpha(following) * (guided - picture)
    return x


def heunpp2(table, x, sigmas, normal, options=None):
    options = options or {}
    count = len(sigmas) - 1
    for i in range(count):
        now, following = sigmas[i], sigmas[i + 1]
        if options:
            fresh = normal()
            gamma = min(options["amount"] / count, math.sqrt(2) - 1)
            x = x + fresh * math.sqrt((now * (1 + gamma)) ** 2 - now**2)
            now *= 1 + gamma
        d = (x - table.denoised(x, now)) / now
        if i < count - 1:
            second = x + d * (following - now)
            d2 = (second - table.denoised(second, following)) / following
            if i == count - 2:
                w2 = following / (2 * sigmas[0])
                d = d * (1 - w2) + d2 * w2
            else:
                after = sigmas[i + 2]
                third = second + d2 * (after - following)
                d3 = (third - table.denoised(third, after)) / after
                w2, w3 = following / (3 * sigmas[0]), after / (3 * sigmas[0])
                d = d * (1 - w2 - w3) + d2 * w2 + d3 * w3
        x = x + d * (following - now)
    return x


class Path:
    """Fresh noise whose variance after a way h in lambda is 1 - exp(-2 eta h)."""

    def __init__(self, eta, normal):
        self.eta, self.normal, self.at, self.value = eta, normal, 0.0, 0.0

    def to(self, h):
        if self.eta > 0:
            part, self.at = (h - self.at) * self.eta, h
            fresh = math.sqrt(-math.expm1(-2 * part)) * self.normal()
            self.value = math.exp(-part) * self.value + fresh
        return self.value


def seeds(table, x, sigmas, normal, eta, nodes, second_order=False):
    """Gonzalez et al. 2023 as ComfyUI has it: explicit exponential Runge-Kutta steps."""
    sigmas = table.with_signal(sigmas)
    for now, following in zip(sigmas, sigmas[1:]):
        pictures = [table.denoised(x, now)]
        if following == 0:
            return pictures[0]
        start = table.half_log_snr(now)
        h = table.half_log_snr(following) - start
        path = Path(eta, normal)

        def moved(share, weights):
            level = table.sigma_at(start + share * h)
            out = level / now * math.exp(-share * h * eta) * x + level * path.to(share * h)
            for each, part in zip(weights, pictures):
                out = out - table.alpha(level) * each * part
            return out, level

        def phi(share):
            z = -share * h * (1 + eta)
            return math.expm1(z), (math.expm1(z) - z) / z

        first, second = zip(*(phi(share) for share in (*nodes, 1)))
        pictures.append(table.denoised(*moved(nodes[0], [first[0]])))
        if len(nodes) == 2:
            late = nodes[1] / nodes[0] * second[1]
            pictures.append(table.denoised(*moved(nodes[1], [first[1] - late, late])))
            late = second[2] / nodes[1]
            x, _ = moved(1, [first[2] - late, 0, late])
        elif second_order:
            late = second[1] / nodes[0]
            x, _ = moved(1, [first[1] - late, late])
        else:
            late = first[1] / (2 * nodes[0])
            x, _ = moved(1, [first[1] - late, late])
    return x


def er_sde(table, x, sigmas, normal):
    """Cui et al. 2023, VP ER-SDE-Solver-3, as ComfyUI has it."""
    def scaler(ratio):
        return ratio * (np.exp(ratio**0.3) + 10.0)

    sigmas = table.with_signal(sigmas)
    ratios = [sigma / table.alpha(sigma) for sigma in sigmas]
    pictures, slopes = [], []
    for i, (now, following) in enumerate(zip(sigmas, sigmas[1:])):
        pictures.append(table.denoised(x, now))
        if following == 0:
            return pictures[-1]
        s, t, alpha = ratios[i], ratios[i + 1], table.alpha(following)
        r = scaler(t) / scaler(s)
        x = alpha / table.alpha(now) * r * x + alpha * (1 - r) * pictures[-1]
        if i > 0:
            points = t + np.arange(200) * (s - t) / 200
            slopes.append((pictures[-1] - pictures[-2]) / (s - ratios[i - 1]))
            rate = np.sum(1 / scaler(points)) * (s - t) / 200
            x = x + alpha * (t - s + rate * scaler(t)) * slopes[-1]
            if i > 1:
                far = np.sum((points - s) / scaler(points)) * (s - t) / 200
                bend = (slopes[-1] - slopes[-2]) / ((s - ratios[i - 2]) / 2)
                x = x + alpha * ((t - s) ** 2 / 2 + far * scaler(t)) * bend
        x = x + alpha * normal() * math.sqrt(max(t**2 - (s * r) ** 2, 0))
    return x


def sa_solver(table, x, sigmas, normal, twice):
    """Xue et al. 2023, predictor of order 3 and corrector of order 4, as ComfyUI has it. The
    integrals of Lagrange's polynomials are done by quadrature."""
    sigmas = table.with_signal(sigmas)
    lambdas = [table.half_log_snr(sigma) if sigma > 0 else math.inf for sigma in sigmas]
    count, pictures, tau, noise, state = len(sigmas) - 1, [], 0.0, 0.0, x

    def moved(i, order, end):
        start, stop, m = lambdas[end - 1], lambdas[end], 1 + tau**2
        nodes = [lambdas[i - j] for j in range(order)]
        out = sigmas[end] / sigmas[end - 1] * math.exp(-(tau**2) * (stop - start)) * state
        for j, node in enumerate(nodes):
            def integrand(u):
                value = m * math.exp(m * (u - stop))
                for k, other in enumerate(nodes):
                    if k != j:
                        value *= (u - other) / (node - other)
                return value
            area = integrate.quad(integrand, start, stop, epsabs=1e-12, epsrel=1e-12)[0]
            out = out + table.alpha(sigmas[end]) * area * pictures[i - j]
        return out + noise

    for i in range(count):
        ends = sigmas[i + 1] == 0
        pictures.append(table.denoised(x, sigmas[i]))
        state_now = x
        if i > 0 and (twice or not ends):
            state_now = moved(i, min(4, i + 1, count - i), i)
            if twice:
                pictures[-1] = table.denoised(state_now, sigmas[i])
        state = state_now
        if ends:
            return pictures[-1]
        tau = 1.0 if table.share(0.2) >= sigmas[i + 1] >= table.share(0.8) else 0.0
        noise = 0.0
        if tau > 0:
            h = lambdas[i + 1] - lambdas[i]
            noise = normal() * sigmas[i + 1] * math.sqrt(-math.expm1(-2 * tau**2 * h))
        x = moved(i, min(3, i + 1, count - 1 - i), i + 1)
    return x
