/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FFT_H
#define FFT_H
#include <complex.h>

#define MAX_N 64

typedef double complex dcomplex;

void fft_init(int n);
void fft_row(int sign, int n, dcomplex *x, dcomplex *scratch);
#endif
