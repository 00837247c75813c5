"""Derives the polynomial coefficients of ``polyax_kernels.emit.functions``, and of ``erfcx``.

They are minimax fits, by Remez exchange in mpmath.

Run ``python backends_cpu/tools/fit.py`` to print them; nothing at run time depends on this file.
Each fit approximates ``f(t)`` by a polynomial, with the error weighted by ``w(t)`` so that the *relative* error of the
function that the polynomial is part of is what becomes small.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

mp.mp.prec = 160
GRID = 1500
Real = Callable[[mp.mpf], mp.mpf]


def minimax(f: Real, w: Real, lo: float, hi: float, degree: int) -> tuple[list[mp.mpf], mp.mpf]:
    """Coefficients (constant first) with the least ``max |w (p - f)|`` on ``[lo, hi]``, and that maximum."""
    lo, hi, n = mp.mpf(lo), mp.mpf(hi), degree + 2
    middle, half = (lo + hi) / 2, (hi - lo) / 2
    points = [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    grid = [middle - half * mp.cos(mp.pi * (i + mp.mpf(1) / 2) / GRID) for i in range(GRID)]
    wanted = [(w(t), f(t)) for t in grid]
    for _ in range(12):
        rows = [[t**k for k in range(degree + 1)] + [(-1) ** i / w(t)] for i, t in enumerate(points)]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([f(t) for t in points]))
        coefficients, level = list(solution)[:-1], abs(solution[n - 1])
        errors = [wt * (mp.polyval(coefficients[::-1], t) - ft) for t, (wt, ft) in zip(grid, wanted, strict=True)]
        points = _extrema(grid, errors, n)
        if max(map(abs, errors)) < level * mp.mpf("1.01"):
            break
    return coefficients, max(map(abs, errors))


def _extrema(grid: list[mp.mpf], errors: list[mp.mpf], n: int) -> list[mp.mpf]:
    """The ``n`` largest errors of alternating sign."""
    runs: list[int] = []
    for i, e in enumerate(errors):
        if runs and (errors[runs[-1]] > 0) == (e > 0):
            runs[-1] = max(runs[-1], i, key=lambda j: abs(errors[j]))
        else:
            runs.append(i)
    while len(runs) > n:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return [grid[i] for i in runs]


def report(name: str, f: Real, w: Real, lo: float, hi: float, degree: int) -> None:
    coefficients, error = minimax(f, w, lo, hi, degree)
    print(f"{name}: error {mp.nstr(error, 3)} = 2^{mp.nstr(mp.log(error, 2), 3)}")
    print("    (" + ", ".join(mp.nstr(c, 20) for c in coefficients) + ")")


def series(f: Real, at_zero: mp.mpf) -> Real:
    """``f`` with its limit at zero."""
    return lambda t: at_zero if abs(t) < mp.mpf(10) ** -25 else f(t)


ZERO = mp.mpf("1e-30")
"""Added to weights that would vanish."""


def doubles() -> None:
    """Of the functions of float64."""
    edge, one = mp.log(2) / 2 * mp.mpf("1.01"), mp.mpf(1)
    # expm1(r) = r + r^2 q(r), relative to r
    tail = series(lambda r: (mp.exp(r) - 1 - r) / r**2, one / 2)
    report("exp double", tail, lambda r: abs(r) + ZERO, -edge, edge, 10)
    # f(x) = x + x^3 q(x^2)
    odd = lambda f, third: series(lambda t: (f(mp.sqrt(t)) / mp.sqrt(t) - 1) / t, third)
    linear = lambda t: t + ZERO
    report("sinh double", odd(mp.sinh, one / 6), linear, 0, 1, 7)
    report("asinh double", odd(mp.asinh, -one / 6), linear, 0, 0.25, 11)
    report("atanh double", odd(mp.atanh, one / 3), linear, 0, 0.0625, 7)
    report("atan double", odd(mp.atan, -one / 3), linear, 0, (mp.tan(mp.pi / 8) * mp.mpf("1.0001")) ** 2, 10)
    report("asin double", odd(mp.asin, one / 6), linear, 0, 0.25, 12)
    top = (mp.pi / 4 * mp.mpf("1.001")) ** 2
    report("sin double", odd(mp.sin, -one / 6), linear, 0, top, 5)
    # cos(r) = 1 - r^2/2 + r^4 q(r^2)
    cosine = series(lambda t: (mp.cos(mp.sqrt(t)) - 1 + t / 2) / t**2, one / 24)
    report("cos double", cosine, lambda t: t**2 + ZERO, 0, top, 5)
    # acosh(1 + t) = sqrt(2 t) (1 + t q(t))
    tail = series(lambda t: (mp.acosh(1 + t) / mp.sqrt(2 * t) - 1) / t, -one / 12)
    report("acosh double", tail, linear, 0, 0.5, 11)
    # atanh(s) = s + s^3 / 3 + s^5 q(s^2), up to (sqrt(2) - 1) / (sqrt(2) + 1)
    tail = series(lambda t: (mp.atanh(mp.sqrt(t)) / mp.sqrt(t) - 1 - t / 3) / t**2, one / 5)
    report("log tail double", tail, lambda t: t**2 + ZERO, 0, (mp.sqrt(2) - 1) ** 4, 8)
    # (1 + r)^(-1/3), for r that a third of the exponent's bits leaves
    root = lambda r: mp.cbrt(1 + r)
    report("cbrt double", lambda r: 1 / root(r), root, -0.0912398553566567, 0.1001821899059278, 4)
    errors_double()


def errors_double() -> None:
    """The error function: erf(x) = x + x q(x^2) on [0, 1], 1 - exp(-x^2) t p(t), t = 1 / (1 + x / 2), on [1, 6]; its
    complement; and its inverse x p(w) with w = -log(1 - x^2), beyond 6.25 by sqrt(w)."""
    ratio = series(lambda t: mp.erf(mp.sqrt(t)) / mp.sqrt(t), 2 / mp.sqrt(mp.pi))
    report("erf near double", lambda t: ratio(t) - 1, lambda t: 1 / ratio(t), 0, 1, 11)
    x = lambda t: 2 / t - 2
    scaled = lambda t: mp.erfc(x(t)) * mp.exp(x(t) ** 2) / t
    report("erf far double", scaled, lambda t: mp.exp(-(x(t) ** 2)) * t / mp.erf(x(t)), 0.25, 2 / mp.mpf(3), 11)
    # erfc(x) = exp(-x^2) t p(2 t - 1), t = 1 / (1 + 0.4 x)
    x = lambda v: (2 / (1 + v) - 1) * mp.mpf("2.5")
    scaled = lambda v: mp.erfc(x(v)) * mp.exp(x(v) ** 2) * 2 / (1 + v)
    report("erfc double", scaled, lambda v: 1 / scaled(v), 2 / (1 + mp.mpf("27.3") * mp.mpf("0.4")) - 1, 1, 24)
    for name, lo, hi, degree in (("near", 0, 6.25, 22), ("middle", 2.5, 4, 18), ("far", 4, 6.125, 18)):
        middle, power = mp.mpf(lo + hi) / 2, 1 if name == "near" else 2
        inverse = lambda v, middle=middle, power=power: _inverse((v + middle) ** power)
        report(f"erf_inv {name} double", inverse, lambda v, f=inverse: 1 / f(v), lo - middle, hi - middle, degree)


def _inverse(w: mp.mpf) -> mp.mpf:
    """erf_inv(x) / x for w = -log(1 - x^2)."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x if w > mp.mpf(10) ** -20 else mp.sqrt(mp.pi) / 2


def main() -> None:
    doubles()
    ln2, quarter = mp.log(2), mp.pi / 4
    one = mp.mpf(1)
    # exp(r) = 1 + r + r^2 q(r)
    tail = series(lambda r: (mp.exp(r) - 1 - r) / r**2, one / 2)
    for name, degree in (("exp32", 4), ("exp64", 9)):
        report(name, tail, lambda r: r**2 / mp.exp(r) + mp.mpf("1e-30"), -ln2 / 2 * 1.01, ln2 / 2 * 1.01, degree)
    # expm1(r) = r + r^2 q(r), relative to r
    report("expm1_32", tail, lambda r: abs(r) + mp.mpf("1e-30"), -ln2 / 2 * 1.01, ln2 / 2 * 1.01, 5)
    # 2^r = 1 + r q(r)
    report(
        "exp2_32", series(lambda r: (2**r - 1) / r, ln2), lambda r: abs(r) / 2**r + mp.mpf("1e-30"), -0.505, 0.505, 5
    )
    # log(1+f) = f - f^2/2 + f^3 q(f)
    tail = series(lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, one / 3)
    report("log32", tail, lambda f: f**2 + mp.mpf("1e-30"), mp.sqrt(0.5) - 1, mp.sqrt(2) - 1, 7)
    # log(m) = 2 s (1 + s^2 q(s^2)) with s = (m-1)/(m+1)
    tail = series(lambda t: (mp.atanh(mp.sqrt(t)) / mp.sqrt(t) - 1) / t, one / 3)
    report("log64", tail, lambda t: t + mp.mpf("1e-30"), 0, ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2, 6)
    # sin(r) = r + r^3 q(r^2), cos(r) = 1 - r^2/2 + r^4 q(r^2)
    sine = series(lambda t: (mp.sin(mp.sqrt(t)) / mp.sqrt(t) - 1) / t, -one / 6)
    cosine = series(lambda t: (mp.cos(mp.sqrt(t)) - 1 + t / 2) / t**2, one / 24)
    top = (quarter * 1.02) ** 2
    for name, degree in (("32", 2), ("64", 4)):
        report("sin" + name, sine, lambda t: t + mp.mpf("1e-30"), 0, top, degree)
        report("cos" + name, cosine, lambda t: t**2 + mp.mpf("1e-30"), 0, top, degree)
    # sinh(x) = x + x^3 q(x^2) on [0, 1], asinh on [0, 0.6], acosh(1 + t) = sqrt(2 t) (1 + t q(t)) on [0, 1/2]
    tail = series(lambda t: (mp.sinh(mp.sqrt(t)) / mp.sqrt(t) - 1) / t, one / 6)
    report("sinh32", tail, lambda t: t + mp.mpf("1e-30"), 0, 1.01, 3)
    tail = series(lambda t: (mp.asinh(mp.sqrt(t)) / mp.sqrt(t) - 1) / t, -one / 6)
    report("asinh32", tail, lambda t: t + mp.mpf("1e-30"), 0, 0.36, 5)
    tail = series(lambda t: (mp.acosh(1 + t) / mp.sqrt(2 * t) - 1) / t, -one / 12)
    report("acosh32", tail, lambda t: t + mp.mpf("1e-30"), 0, 0.5, 4)
    # atan(x) = x + x^3 q(x^2) on [0, tan(pi/8)]
    tail = series(lambda t: (mp.atan(mp.sqrt(t)) / mp.sqrt(t) - 1) / t, -one / 3)
    report("atan64", tail, lambda t: t + mp.mpf("1e-30"), 0, (mp.tan(mp.pi / 8) * 1.001) ** 2, 7)
    # asin(x) = x + x^3 q(x^2) on [0, 1/2]
    tail = series(lambda t: (mp.asin(mp.sqrt(t)) / mp.sqrt(t) - 1) / t, one / 6)
    report("asin64", tail, lambda t: t + mp.mpf("1e-30"), 0, 0.25, 8)
    # erf(x) = x + x q(x^2) on [0, 0.9], 1 - exp(p(x)) on [0.9, 4]
    ratio = series(lambda t: mp.erf(mp.sqrt(t)) / mp.sqrt(t), 2 / mp.sqrt(mp.pi))
    report("erf32 near", lambda t: ratio(t) - 1, lambda t: 1 / ratio(t), 0, 0.86, 6)
    report("erf32 far", lambda x: mp.log(mp.erfc(x)), lambda x: mp.erfc(x) / mp.erf(x), 0.9, 4, 6)
    # erfc(x) = exp(-x^2) t p(t), t = 1 / (1 + x / 2), on [0, 10.1]
    argument = lambda t: 2 / t - 2
    scaled = lambda t: mp.erfc(argument(t)) * mp.exp(argument(t) ** 2) / t
    report("erfc32", scaled, lambda t: 1 / scaled(t), 1 / mp.mpf("6.05"), 1, 10)
    # erfcx(x) = t p(2 t - 1), t = 1 / (1 + 0.4 x), in the core's scipy.special
    argument = lambda v: (2 / (1 + v) - 1) * mp.mpf("2.5")
    scaled = lambda v: mp.erfc(argument(v)) * mp.exp(argument(v) ** 2) * 2 / (1 + v)
    for degree in (10, 24):
        report(f"erfcx {degree}", scaled, lambda v: 1 / scaled(v), mp.mpf("-0.9999"), 1, degree)


if __name__ == "__main__":
    main()
