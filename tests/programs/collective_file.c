/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collective_file FILE [ROWS [COLUMNS]]: parallel HDF5, written and read collectively.
 *
 * Ranks own the columns of a matrix in turn (0, 1, 0, 1, ...), so that every piece of the
 * file holds data of all of them and MPI-IO has to exchange it; then each reads a band of
 * rows, written by all of them, and compares every element.
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) < 0) {                                                                          \
            fprintf(stderr, "collective_file: %s failed\n", #call);                                \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)

static double value_at(hsize_t row, hsize_t column)
{
    return (double)row * 65536.0 + (double)column;
}

static double *allocate(hsize_t count)
{
    double *p = malloc((size_t)(count ? count : 1) * sizeof *p);
    if (!p) {
        fprintf(stderr, "collective_file: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

static hid_t open_file(const char *name, int create)
{
    hid_t access, file;
    CHECK(access = H5Pcreate(H5P_FILE_ACCESS));
    CHECK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
    if (create)
        CHECK(file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access));
    else
        CHECK(file = H5Fopen(name, H5F_ACC_RDONLY, access));
    CHECK(H5Pclose(access));
    return file;
}

static hid_t collective(void)
{
    hid_t transfer;
    CHECK(transfer = H5Pcreate(H5P_DATASET_XFER));
    CHECK(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE));
    return transfer;
}

static void close_all(hid_t file, hid_t transfer, hid_t space, hid_t memory, hid_t set)
{
    CHECK(H5Sclose(memory));
    CHECK(H5Sclose(space));
    CHECK(H5Dclose(set));
    CHECK(H5Pclose(transfer));
    CHECK(H5Fclose(file));
}

static void write_columns(const char *name, const hsize_t size[2], hsize_t rank, hsize_t ranks)
{
    const hsize_t mine = size[1] / ranks + (rank < size[1] % ranks);
    const hsize_t start[2] = {0, rank}, stride[2] = {1, ranks}, count[2] = {size[0], mine};
    double *data = allocate(size[0] * mine);
    for (hsize_t row = 0; row < size[0]; row++)
        for (hsize_t i = 0; i < mine; i++)
            data[row * mine + i] = value_at(row, rank + i * ranks);

    hid_t file = open_file(name, 1), transfer = collective(), space, memory, set;
    CHECK(space = H5Screate_simple(2, size, NULL));
    CHECK(set = H5Dcreate2(file, "matrix", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT,
                           H5P_DEFAULT));
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL));
    CHECK(memory = H5Screate_simple(2, count, NULL));
    CHECK(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, data));
    close_all(file, transfer, space, memory, set);
    free(data);
}

/* How many elements of this rank's band are wrong. */
static long long read_band(const char *name, const hsize_t size[2], hsize_t rank, hsize_t ranks)
{
    const hsize_t first = size[0] * rank / ranks, last = size[0] * (rank + 1) / ranks;
    const hsize_t start[2] = {first, 0}, count[2] = {last - first, size[1]};
    double *data = allocate(count[0] * count[1]);

    hid_t file = open_file(name, 0), transfer = collective(), space, memory, set;
    CHECK(set = H5Dopen2(file, "matrix", H5P_DEFAULT));
    CHECK(space = H5Dget_space(set));
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
    CHECK(memory = H5Screate_simple(2, count, NULL));
    CHECK(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, transfer, data));
    close_all(file, transfer, space, memory, set);

    long long wrong = 0;
    for (hsize_t row = 0; row < count[0]; row++)
        for (hsize_t column = 0; column < count[1]; column++)
            wrong += data[row * count[1] + column] != value_at(first + row, column);
    free(data);
    return wrong;
}

static hsize_t number(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*end || *text == '-' || value < 1 || value > 65536) {
        fprintf(stderr, "collective_file: not a number from 1 to 65536: %s\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: collective_file FILE [ROWS [COLUMNS]]\n");
        return 2;
    }
    const hsize_t size[2] = {argc > 2 ? number(argv[2]) : 1024, argc > 3 ? number(argv[3]) : 1024};
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    write_columns(argv[1], size, (hsize_t)rank, (hsize_t)ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    long long wrong = read_band(argv[1], size, (hsize_t)rank, (hsize_t)ranks), all;
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("collective_file: %llu x %llu doubles, ranks %d, wrong elements %lld\n",
               (unsigned long long)size[0], (unsigned long long)size[1], ranks, all);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
