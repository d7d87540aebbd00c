/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_TESTS_MADE_UP_RUN_H_INCLUDED
#define ZCF_TESTS_MADE_UP_RUN_H_INCLUDED

#include "forecast.h"

namespace zc::forecast::test {

constexpr std::int64_t kMs = 1'000'000;

/** When the two sides of a message did what; nanoseconds. */
struct message_times {
    std::int64_t sent;
    std::int64_t send_waiting; /* the call that completed it began; a blocking send: == sent */
    std::int64_t send_done;
    std::int64_t posted;
    std::int64_t receive_waiting;
    std::int64_t received;
};

/** A recorded run without a program: ranks on hosts of their own. */
class made_up_run {
  public:
    explicit made_up_run(std::int32_t processes);

    void message(std::int32_t source, std::int32_t dest, std::uint64_t bytes,
                 const message_times &t, std::uint64_t addr = 0x10000);

    /** The last message of @source is one of MPI_Ssend. */
    void make_synchronous(std::int32_t source);

    /** The last message from @source to @dest was sent and received at other places. */
    void move_to_other_sites(std::int32_t source, std::int32_t dest);

    /** A probe, which the receive of the next message follows. */
    void probe(std::int32_t rank, std::int64_t begin, std::int64_t end);

    /** A call of every rank on the world; @begin and @end of each. */
    void collective(zct_kind kind, std::int32_t root, const std::vector<std::int64_t> &begin,
                    const std::vector<std::int64_t> &end);

    /** MPI_Finalize at these times; and the calls in order. */
    const zct::run &end(const std::vector<std::int64_t> &times);

  private:
    void call(zct::rank_trace &rank, zct_function function, std::int64_t begin, std::int64_t end,
              std::vector<std::uint64_t> sends);
    zct::run run_{};
    std::size_t nr_collectives_ = 0;
};

/** What zc-forecast makes of a run. */
prediction prediction_of(const zct::run &run);
forecast forecast_of(const zct::run &run);

} // namespace zc::forecast::test

#endif
