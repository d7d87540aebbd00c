/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_RANK_ROWS_H_INCLUDED
#define ZCT_RANK_ROWS_H_INCLUDED

#include <functional>
#include <tuple>
#include <vector>

#include "match.h"
#include "places.h"
#include "run_files.h"

namespace zc::zct {

/** Makes the rows of one rank, of which there may be more than fit into memory. */
class rank_rows {
  public:
    rank_rows(const run_file &file, const communicator_names &names, sends_in_flight &in_flight,
              const collective_calls &calls, const std::vector<bool> &present, run &run)
        : file_(file), names_(names), in_flight_(in_flight), calls_(calls), present_(present),
          run_(run), rank_(file.counted.rank)
    {
    }

    /** Calls @see with each, in order of posting. Once. */
    void each(const std::function<void(const receive &)> &see);

  private:
    /* A rank is read alone, so these bound what is in memory. */
    static constexpr std::size_t kRowBudget = std::size_t{16} << 20;
    static constexpr std::size_t kBudget = std::size_t{4} << 20;

    /** A receive that takes a message. */
    struct taker {
        message_envelope envelope;
        std::uint64_t order;
        bool lost;
        std::uint64_t number; /* place among the receives, or the lost ones, of the file */
        auto operator<=>(const taker &) const = default;
    };
    /** What a receive took. */
    struct match {
        std::uint64_t receive; /* as taker::number */
        sent_message sent;
        bool operator<(const match &other) const { return receive < other.receive; }
    };
    /** A row, to be put in order of posting. */
    struct ordered_row {
        std::uint64_t order;
        bool collective;      /* the rows of one call have one order, and keep theirs */
        std::uint64_t number; /* among the rows of such kind */
        receive what;
        bool operator<(const ordered_row &other) const
        {
            return std::tie(order, collective, number) <
                   std::tie(other.order, other.collective, other.number);
        }
    };

    void find_takers(sorter<taker> &takers);
    void match_receives();
    void make_rows();
    void add_receive(const file_records &part, const receive_record &r);
    void add_collective(const file_records &part, const collective_record &call);
    void add_collective_row(const file_records &part, const collective_record &call,
                            std::size_t nth, receive row);
    bool is_present(std::int32_t rank) const;

    const run_file &file_;
    const communicator_names &names_;
    sends_in_flight &in_flight_;
    const collective_calls &calls_;
    const std::vector<bool> &present_;
    run &run_;
    std::int32_t rank_;
    sorter<match> matches_{kBudget};
    sorter<ordered_row> rows_{kRowBudget};
    std::uint64_t nr_receives_ = 0;
    std::uint64_t nr_lost_ = 0;
    std::uint64_t nr_collectives_ = 0;
    std::uint64_t nr_collective_rows_ = 0;
    std::vector<std::size_t> nr_calls_; /* of collectives, on each communicator */
};

} // namespace zc::zct

#endif
