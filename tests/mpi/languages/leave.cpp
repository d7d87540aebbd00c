// SPDX-License-Identifier: BSD-3-Clause
// An error handler leaves MPI by an exception, which is caught outside. What is sent to that
// process while it computes behind it lands nevertheless, and all goes on.
#include <chrono>
#include <cstdio>
#include <mpi.h>
#include <thread>
#include <vector>

namespace {

constexpr int kRounds = 5, kBytes = 8 << 20, kPatienceMs = 30000;

void throw_it(MPI_Comm *, int *code, ...)
{
    int error = MPI_ERR_UNKNOWN;
    MPI_Error_class(*code, &error);
    throw error;
}

// False: no error was found, or another.
bool leave_by_error(MPI_Comm comm)
{
    const int none = 0;
    try {
        MPI_Send(&none, 1, MPI_INT, 7, 0, comm);
    } catch (int error) {
        return error == MPI_ERR_RANK;
    }
    return false;
}

// The counter "landed" of ch4:zc, read without entering MPI; another library has none.
class landed_counter {
  public:
    landed_counter()
    {
        int level, index, count;
        MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
        MPI_T_pvar_session_create(&session_);
        there_ = MPI_T_pvar_get_index("ch4_zc_landed", MPI_T_PVAR_CLASS_COUNTER, &index) ==
                     MPI_SUCCESS &&
                 MPI_T_pvar_handle_alloc(session_, index, nullptr, &handle_, &count) == MPI_SUCCESS;
    }
    ~landed_counter()
    {
        MPI_T_pvar_session_free(&session_);
        MPI_T_finalize();
    }
    landed_counter(const landed_counter &) = delete;
    landed_counter &operator=(const landed_counter &) = delete;

    // Computes until it has reached @value.
    bool await(unsigned long long value) const
    {
        unsigned long long now = 0;
        for (int ms = 0; there_ && ms < kPatienceMs; ms++) {
            MPI_T_pvar_read(session_, handle_, &now);
            if (now >= value)
                return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return !there_;
    }

  private:
    MPI_T_pvar_session session_{};
    MPI_T_pvar_handle handle_{};
    bool there_ = false;
};

const char *receive_all(MPI_Comm comm, std::vector<unsigned char> &buffer)
{
    landed_counter landed;
    for (int round = 1; round <= kRounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (!leave_by_error(comm))
            return "no exception came out of MPI_Send";
        if (!landed.await(static_cast<unsigned long long>(round)))
            return "nothing landed behind an error handler that had left";
        MPI_Recv(buffer.data(), kBytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (unsigned char byte : buffer)
            if (byte != round)
                return "wrong data";
    }
    return nullptr;
}

void send_all(std::vector<unsigned char> &buffer)
{
    for (int round = 1; round <= kRounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        buffer.assign(buffer.size(), static_cast<unsigned char>(round));
        // Not before the other side is out of MPI.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        MPI_Send(buffer.data(), kBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

} // namespace

int main(int argc, char **argv)
{
    int rank = 0, provided = 0;
    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(throw_it, &handler);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    std::vector<unsigned char> buffer(kBytes);

    const char *wrong = nullptr;
    if (rank == 0)
        wrong = receive_all(comm, buffer);
    else if (rank == 1)
        send_all(buffer);
    if (wrong) {
        std::fprintf(stderr, "%s\n", wrong);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    if (rank == 0)
        std::puts("No Errors");
    return 0;
}
