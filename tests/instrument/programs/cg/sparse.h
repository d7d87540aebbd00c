/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPARSE_H
#define SPARSE_H
#include <stddef.h>

/* Rows of a symmetric sparse matrix, a band of them per process (CSR). */
struct matrix {
    int n, first, rows;
    int *begin; /* rows + 1 */
    int *column;
    double *value;
};

extern int me, processes;

void make_matrix(struct matrix *a, int n, int nonzeros, double shift, unsigned seed);
void free_matrix(struct matrix *a);
void multiply(const struct matrix *a, const double *x, double *y);
double uniform_number(unsigned *seed);
void *allocate(size_t bytes);
#endif
