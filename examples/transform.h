/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two-dimensional Walsh-Hadamard transforms of matrices that are spread over all ranks.
 *
 * A small library as many are: it takes no communicator and uses MPI_COMM_WORLD.
 */
#ifndef TRANSFORM_H_INCLUDED
#define TRANSFORM_H_INCLUDED

/* Prepares for matrices of @n rows and columns, a power of two that the number of ranks divides.
 * Collective. Returns the number of rows of this rank, 0 if that cannot be. */
int transform_begin(int n);

/* Transforms this rank's @rows in place. Collective. Twice the transform is n * n times the
 * matrix. */
void transform(double *rows);

/* Collective. */
void transform_end(void);

#endif
