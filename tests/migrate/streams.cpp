/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A C++ program whose state is a vector that grows, and that writes a line per iteration to
 * std::cout and to a stream of its own, which both are in buffers when it moves.
 *
 *     streams FILE       until FILE exists; rank N writes to FILE.N
 */
#include <chrono>
#include <fstream>
#include <iostream>
#include <mpi.h>
#include <numeric>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>
#include <zcm/zcm.h>

namespace {

constexpr long kMost = 5000; /* elements: it begins again then */

/* Its destructor would run in a process that leaves, too, were it not for zcm: the line would be in
 * the file twice. */
struct closing {
    std::ofstream file;
    ~closing() { file << "end\n"; }
} out;

void need(int code, const std::string &what)
{
    if (code == 0)
        return;
    std::cerr << what << ": " << zcm_strerror(code) << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What the man page asks of programs with streams of their own. */
int flush_own(void * /*none*/)
{
    out.file.flush();
    return 0;
}

class work {
  public:
    explicit work(int rank) : rank_(rank)
    {
        if (zcm_resumed())
            values_.resize(static_cast<std::size_t>(zcm_saved_count("values")));
        need(zcm_register("values", values_.data(), values_.size(), MPI_DOUBLE), "values");
        need(zcm_register("step", &step_, 1, MPI_LONG), "step");
    }

    void do_step()
    {
        need(zcm_safe_point(), "safe point");
        const double sum = std::accumulate(values_.begin(), values_.end(), 0.0);
        const auto n = static_cast<double>(values_.size());
        if (static_cast<long>(values_.size()) != step_ % kMost ||
            sum != n * (n - 1) / 2 + n * rank_)
            need(-1, "the values are not those of step " + std::to_string(step_));
        if (step_ % 64 == 0)
            std::cout << "line " << rank_ << ' ' << step_ << '\n';
        out.file << step_ << '\n';
        step_++;
        if (step_ % kMost == 0)
            values_.clear();
        else
            values_.push_back(n + rank_);
        need(zcm_reregister("values", values_.data(), values_.size()), "values");
    }

  private:
    int rank_;
    long step_ = 0;
    std::vector<double> values_;
};

} // namespace

int main(int argc, char **argv)
{
    std::ios::sync_with_stdio(false); /* std::cout has a buffer of its own then */
    if (argc < 2)
        return 2;
    int rank = 0, is_over = 0;
    MPI_Init(&argc, &argv);
    need(zcm_init(&argc, &argv), "zcm_init");
    MPI_Comm_rank(zcm_world(), &rank);
    out.file.open(std::string(argv[1]) + "." + std::to_string(rank), std::ios::app);
    zcm_on_save(flush_own, nullptr);
    work mine(rank);
    while (!is_over) {
        mine.do_step();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        is_over = access(argv[1], F_OK) == 0;
        MPI_Bcast(&is_over, 1, MPI_INT, 0, zcm_world());
    }
    if (rank == 0)
        std::cout << "all right\n";
    need(zcm_finalize(), "zcm_finalize");
    MPI_Finalize();
    return 0;
}
