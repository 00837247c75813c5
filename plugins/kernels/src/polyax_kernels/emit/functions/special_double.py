"""The error function of float64, its complement, both within 2 ulp, and its inverse."""

from __future__ import annotations

from polyax_kernels.emit.functions.blocks import (
    INF,
    NAN,
    V,
    absolute,
    fma,
    poly,
    power_of_two,
    scale,
    select,
    split,
    with_sign,
)
from polyax_kernels.emit.functions.exponential import log_of_double
from polyax_kernels.emit.functions.exponential_double import exp_parts
from polyax_kernels.emit.functions.pairs import any_sum, ordered_sum, product

_ERF_NEAR = (0.12837916709551256565, -0.37612638903183519546, 0.11283791670944185098, -0.026866170643111531174,
             0.0052239776061190011209, -0.00085483259293393610445, 0.00012055293577623623802,
             -0.000014924712315408050785, 1.6447131729851840957e-6, -1.6206314918418699884e-7,
             1.3710985174885639934e-8, -7.7794769590218372761e-10)  # fmt: skip
_ERF_FAR = (0.2821178083618002742, 0.28154977658176869362, 0.25272781967898965686, 0.13786909548202819711,
            0.25152971946343606876, -0.51793158050027439899, 1.0618933696145780034, -1.7672639000454883781,
            1.7562526775198665098, -1.023172664809482452, 0.3310086009726363886, -0.046581025015114138646)  # fmt: skip
_ERFC = (0.42161272812228716256, 0.32186073977565953753, 0.18156564665923845446, 0.068500458098419957932,
         0.011344620052799939945, -0.0033572177210367483561, -0.0019275142094357314226, 0.00017568330741200088291,
         0.00028107749246769475567, -0.000023323120822369680928, -0.000045041961300076248148, 7.8128220357626105306e-6,
         7.2979087013127481741e-6, -2.7012912459143686045e-6, -9.334833084335948555e-7, 7.8370259243426120572e-7,
         -1.0524683139673273766e-9, -1.7670753879524587019e-7, 5.3120972480830896105e-8, 2.5223959551022387874e-8,
         -1.8973940346725512862e-8, -2.9905065728915882686e-10, 3.1535745800822236242e-9, -5.0069672679883395945e-10,
         -1.1927675901177519595e-10)  # fmt: skip
_INVERSE_NEAR = (1.6536545626831028607, 0.24015818242558949213, -0.0060336708714307037917, -0.00074070253416530079612,
                 0.00018673420803638704612, -0.000013882523364908897951, -1.3654692038780797125e-6,
                 4.2347878041628383695e-7, -2.9070366801252246785e-8, -4.1126351627742566681e-9,
                 1.0512107462428254043e-9, -5.4153727315500090657e-11, -1.2974673848779446814e-11,
                 2.6334273600532103281e-12, -8.1607921062716178271e-14, -4.0534878514518175695e-14,
                 6.648591488093875751e-15, 2.0102819176416047383e-17, -1.3415705251772318159e-16,
                 1.1197150456062897382e-17, 1.3222006148478217582e-18, -1.6926567025236339431e-19,
                 -4.323211620587713998e-21)  # fmt: skip
_INVERSE_MIDDLE = (3.0838856104922205226, 1.0052589676941596039, 0.0053709145536025998631, -0.0037512085075982214486,
                   0.002491442095511368717, -0.0016882755553104854563, 0.00095328939064787679589,
                   -0.00035503752823549040004, 0.000024031010523130730405, 0.000068284897537228344277,
                   -0.000047317715968961547922, 0.000012475151546335851888, 2.9218976478605382054e-6,
                   -4.0135785164829002883e-6, 1.5054586099691385553e-6, 1.7949906869838911348e-8,
                   -2.7774814099373190105e-7, 9.0876123400114668189e-8, 3.2290507708424507889e-9)  # fmt: skip
_INVERSE_FAR = (4.9130495872337852002, 1.0102806778035614162, -0.0001773033612975642868, -0.00019677853807814498683,
                0.000070101674630051063556, -0.000018062951497894847226, 4.115356612959432679e-6,
                -8.8722872811714315489e-7, 1.9559025082250543994e-7, -5.2295965174434674495e-8,
                2.0336817295694294118e-8, -1.0371943270138813564e-8, 5.3957294207587675196e-9,
                -2.4496368207275097615e-9, 9.7555731821078824138e-10, -3.7314325199802445155e-10,
                8.3676292294345574172e-11, 2.5982147734741883752e-11, -1.5451449716065758717e-11)  # fmt: skip


def erf(x: V) -> V:
    """Up to 1 a polynomial in x^2; beyond, 1 - exp(-x^2) t p(t) with t = 1 / (1 + |x| / 2), whose error counts for a
    fifth and less; 1 from 6 on."""
    a = absolute(x)
    near = a < 1.0
    a = select(a > 6.0, 6.0, a)
    square = a * a
    t = 1.0 / fma(a, 0.5, 1.0)
    r, curve, n = exp_parts(-square)
    far = 1.0 - (curve + r + 1.0) * power_of_two(n) * (t * poly(t, *_ERF_FAR))
    return select(near, fma(x, poly(square, *_ERF_NEAR), x), with_sign(far, x))


def erfc(x: V) -> V:
    """exp(-a^2) t p(2 t - 1) with a = |x| and t = 1 / (1 + 0.4 a), where the polynomial varies little; 2 minus that
    below 0. What rounding a^2, the sum, its inverse and the product loses is added to the exponential's tail."""
    a = absolute(x)
    a = select(a > 27.3, 27.3, a)  # where float64 underflows
    square, inexact = product(a, a)
    scaled, lost = product(a, 0.4)
    total, more = any_sum(scaled, scaled.like(1.0))
    lost = fma(a, _TENTHS, lost) + more
    t = 1.0 / total
    gone = fma(-total, t, 1.0) - lost * t
    v = fma(t, 2.0, -1.0)
    slope = poly(v, *_ERFC[1:])
    p = fma(v, slope, _ERFC[0])
    h = t * p
    rest = fma(t, p, -h) + t * fma(v, slope, _ERFC[0] - p)
    r, curve, n = exp_parts(-square)
    change = gone * fma(t, 1.8, 1.0) - inexact
    curve = curve + fma(change, r + curve, change)
    result = scale(h + fma(h, r, fma(h, curve, rest)), n)
    return select(x < 0.0, 2.0 - result, result)


_TENTHS = -2.220446049250313e-17
"""What a float64 of 0.4 lacks."""


def erf_inv(x: V) -> V:
    """x p(w) with w = -log(1 - x^2), beyond 6.25 by sqrt(w). What rounding loses of x^2 and the difference counts."""
    square, lost = product(x, x)
    rest, more = ordered_sum(x.like(1.0), -square)
    rest, more = ordered_sum(rest, more - lost)
    k, m = split(rest)
    w = -log_of_double(m - 1.0, k, more / rest)
    root = x.b.intrinsic("sqrt", w)
    far = select(root < 4.0, poly(root - 3.25, *_INVERSE_MIDDLE), poly(root - 5.0625, *_INVERSE_FAR))
    result = x * select(w < 6.25, poly(w - 3.125, *_INVERSE_NEAR), far)
    return select(absolute(x).compare("==", 1.0), x * INF, select(absolute(x) < 1.0, result, NAN))
