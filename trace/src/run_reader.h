/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_RUN_READER_H_INCLUDED
#define ZCT_RUN_READER_H_INCLUDED

#include <functional>

#include "match.h"
#include "run_files.h"

namespace zc::zct {

/** Reads a run whose rows are more than fit into memory: files again and again, block by block, and
 * what has to be put in order by sorters. */
class run_reader {
  public:
    /** As run_in_turn of trace.h. */
    run_reader(const std::filesystem::path &path, std::vector<std::string> *unreadable);

    const run &about() const { return run_; }
    void each_receive(std::size_t place, const std::function<void(const receive &)> &see);
    void each_send(const std::function<void(std::int32_t source, const send &)> &see);

    /** How many each_send() has of one of the ranks. */
    std::uint64_t nr_sends(std::size_t place) const;

    /** The blocks of one of the ranks, in the order of the file. */
    void each_block_of(std::size_t place, const std::function<void(file_records &)> &see) const
    {
        each_block(files_[place].path, files_[place].counted, see);
    }

    /** What of a block was sent: point-to-point, and what a collective call stands for. */
    send send_of(const file_records &part, const send_record &s) const;
    void each_send_of(const file_records &part, const collective_record &call,
                      const std::function<void(const send &)> &see) const;

    const communicator_names &names() const { return names_; }

  private:
    void read_senders();

    std::vector<run_file> files_;
    communicator_names names_;
    run run_{};
    std::vector<bool> present_;
    sends_in_flight in_flight_;
    collective_calls calls_;
    bool senders_read_ = false;
};

} // namespace zc::zct

#endif
