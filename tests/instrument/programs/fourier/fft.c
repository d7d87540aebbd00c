/* SPDX-License-Identifier: BSD-3-Clause */
/* Stockham's transform of lengths that are powers of two. */
#include "fft.h"
#include <math.h>

static dcomplex roots[MAX_N];
static int roots_of;

void fft_init(int n)
{
    int i;
    const double pi = acos(-1.0);
    for (i = 0; i < n; i++)
        roots[i] = cos(2 * pi * i / n) + I * sin(2 * pi * i / n);
    roots_of = n;
}

static void fft_pass(int sign, int half, int stride, int n, const dcomplex *x, dcomplex *y)
{
    int j, k;
    for (j = 0; j < half; j++) {
        const dcomplex w = sign > 0 ? roots[j * (roots_of / (2 * half))]
                                    : conj(roots[j * (roots_of / (2 * half))]);
        for (k = 0; k < stride; k++) {
            const dcomplex a = x[k + stride * j], b = x[k + stride * (j + half)];
            y[k + stride * 2 * j] = a + b;
            y[k + stride * (2 * j + 1)] = (a - b) * w;
        }
    }
    (void)n;
}

void fft_row(int sign, int n, dcomplex *x, dcomplex *scratch)
{
    int half, stride = 1, i, in_scratch = 0;
    for (half = n / 2; half >= 1; half /= 2) {
        if (in_scratch)
            fft_pass(sign, half, stride, n, scratch, x);
        else
            fft_pass(sign, half, stride, n, x, scratch);
        in_scratch = !in_scratch;
        stride *= 2;
    }
    if (in_scratch)
        for (i = 0; i < n; i++)
            x[i] = scratch[i];
}
