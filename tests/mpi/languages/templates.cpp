// SPDX-License-Identifier: BSD-3-Clause
// A C++ program as scientific codes are: fields of several types by templates, faces exchanged as
// derived datatypes, reductions of complex numbers, errors as exceptions. The messages are large
// and late, so that they land.
#include <complex>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <mpi.h>
#include <stdexcept>
#include <string>
#include <vector>

template <typename T>
struct mpi_type;
template <>
struct mpi_type<float> {
    static MPI_Datatype get() { return MPI_FLOAT; }
};
template <>
struct mpi_type<double> {
    static MPI_Datatype get() { return MPI_DOUBLE; }
};
template <>
struct mpi_type<std::complex<double>> {
    static MPI_Datatype get() { return MPI_CXX_DOUBLE_COMPLEX; }
};

class mpi_error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

void check(int code)
{
    if (code != MPI_SUCCESS) {
        std::string text(MPI_MAX_ERROR_STRING, '\0');
        int length = 0;
        MPI_Error_string(code, text.data(), &length);
        text.resize(static_cast<std::size_t>(length));
        throw mpi_error(text);
    }
}

// A matrix whose last columns go to the right neighbour, as a vector.
template <typename T>
class field {
  public:
    field(int rows, int columns, int ghosts)
        : rows_(rows), columns_(columns), ghosts_(ghosts),
          data_(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns))
    {
        check(MPI_Type_vector(rows, ghosts, columns, mpi_type<T>::get(), &face_));
        check(MPI_Type_commit(&face_));
    }
    ~field() { MPI_Type_free(&face_); }
    field(const field &) = delete;
    field &operator=(const field &) = delete;

    T &at(int row, int column)
    {
        return data_[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) +
                     static_cast<std::size_t>(column)];
    }

    void exchange(int left, int right, bool late)
    {
        MPI_Request sent;
        check(MPI_Isend(&at(0, columns_ - ghosts_), 1, face_, right, 1, MPI_COMM_WORLD, &sent));
        // Only when it is there: then it is late, however busy the host is.
        if (late)
            check(MPI_Probe(left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        check(MPI_Recv(&at(0, 0), 1, face_, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        check(MPI_Wait(&sent, MPI_STATUS_IGNORE));
    }

  private:
    int rows_, columns_, ghosts_;
    std::vector<T> data_;
    MPI_Datatype face_ = MPI_DATATYPE_NULL;
};

template <typename T>
T value(int rank, int row, int column)
{
    return T(static_cast<float>(rank * 1000 + row % 100 * 10 + column % 10));
}

template <typename T>
int wrong_after_exchange(int rank, int ranks)
{
    constexpr int kRows = 20000, kColumns = 40, kGhosts = 16;
    field<T> f(kRows, kColumns, kGhosts);
    const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    for (int row = 0; row < kRows; row++)
        for (int column = 0; column < kColumns; column++)
            f.at(row, column) = value<T>(rank, row, column);
    f.exchange(left, right, rank % 2 == 1);

    int wrong = 0;
    for (int row = 0; row < kRows; row++)
        for (int column = 0; column < kColumns; column++) {
            const T expected = column < kGhosts ? value<T>(left, row, kColumns - kGhosts + column)
                                                : value<T>(rank, row, column);
            wrong += f.at(row, column) != expected;
        }
    return wrong;
}

int wrong_sums(int rank, int ranks)
{
    const std::complex<double> mine(rank, 1);
    std::complex<double> sum;
    check(MPI_Allreduce(&mine, &sum, 1, mpi_type<std::complex<double>>::get(), MPI_SUM,
                        MPI_COMM_WORLD));
    const bool yes = rank >= 0, no = rank == 0;
    bool both = false, one = false;
    check(MPI_Allreduce(&yes, &both, 1, MPI_CXX_BOOL, MPI_LAND, MPI_COMM_WORLD));
    check(MPI_Allreduce(&no, &one, 1, MPI_CXX_BOOL, MPI_LOR, MPI_COMM_WORLD));
    return (sum != std::complex<double>(ranks * (ranks - 1) / 2, ranks)) + !both + !one;
}

int wrong_errors(int ranks)
{
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    try {
        check(MPI_Send(nullptr, 0, MPI_INT, ranks, 0, MPI_COMM_WORLD));
    } catch (const mpi_error &error) {
        return std::string(error.what()).find("rank") == std::string::npos;
    }
    return 1;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int wrong = wrong_after_exchange<float>(rank, ranks) +
                      wrong_after_exchange<double>(rank, ranks) +
                      wrong_after_exchange<std::complex<double>>(rank, ranks) +
                      wrong_sums(rank, ranks) + wrong_errors(ranks);
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && all > 0)
        std::cout << all << " values are wrong\n";
    else if (rank == 0)
        std::puts(" No Errors");
    MPI_Finalize();
    return 0;
}
