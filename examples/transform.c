/* SPDX-License-Identifier: BSD-3-Clause */
#include "transform.h"

#include <mpi.h>
#include <stdlib.h>

static MPI_Comm comm;
static int size, columns, rows;
static double *out, *in;

int transform_begin(int n)
{
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (n < 1 || (n & (n - 1)) != 0 || n % size != 0)
        return 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* so that no message of others is in the way */
    columns = n;
    rows = n / size;
    out = malloc((size_t)rows * (size_t)n * sizeof *out);
    in = malloc((size_t)rows * (size_t)n * sizeof *in);
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return rows;
}

static void transform_row(double *row)
{
    for (int half = 1; half < columns; half *= 2)
        for (int i = 0; i < columns; i += 2 * half)
            for (int j = i; j < i + half; j++) {
                const double a = row[j], b = row[j + half];
                row[j] = a + b;
                row[j + half] = a - b;
            }
}

static void transpose(double *matrix)
{
    const int block = rows * rows;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            out[c / rows * block + c % rows * rows + r] = matrix[r * columns + c];
    MPI_Alltoall(out, block, MPI_DOUBLE, in, block, MPI_DOUBLE, comm);
    for (int from = 0; from < size; from++)
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < rows; c++)
                matrix[r * columns + from * rows + c] = in[from * block + r * rows + c];
}

void transform(double *matrix)
{
    for (int dimension = 0; dimension < 2; dimension++) {
        for (int r = 0; r < rows; r++)
            transform_row(matrix + r * columns);
        transpose(matrix);
    }
}

void transform_end(void)
{
    MPI_Comm_free(&comm);
    free(out);
    free(in);
}
