/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FFT_H
#define FFT_H
#include <complex.h>

/* As in NPB, how large arrays are is said when it is compiled. */
#ifndef MAX_N
#define MAX_N 64
#endif
#ifndef LEAST_PROCESSES
#define LEAST_PROCESSES 1
#endif

typedef double complex dcomplex;

void fft_init(int n);
void fft_row(int sign, int n, dcomplex *x, dcomplex *scratch);
#endif
