/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_DECODER_H_INCLUDED
#define ZCT_DECODER_H_INCLUDED

/* The records in a file's blocks (zct/format.h). */

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "runs.h"

namespace zc::zct {

/** What the values of the next record of a type are relative to. */
struct last_values {
    std::uint32_t comm = 0;
    std::int32_t peer = 0;
    std::int32_t tag = 0;
    std::uint64_t bytes = 0;
    std::uint64_t addr = 0;
};

/** Decodes the blocks of one file, in order; keeps the records, or counts them only. */
class decoder {
  public:
    decoder(file_records &file, bool keeps) : file_(file), keeps_(keeps) {}

    void block(std::span<const std::uint8_t> payload)
    {
        cursor in(payload);
        if (file_.complete)
            throw malformed{"records after the end of the trace"};
        read_state(in);
        while (!in.at_end())
            record(in);
    }

    /** There are no more blocks. The collectives that did not end are kept now. */
    void finish()
    {
        for (const collective_record &c : running_)
            keep(file_.collectives, c);
        running_.clear();
    }

    /** Where the runs of the collectives begin that were not kept yet. */
    std::uint64_t runs_at() const
    {
        return running_.empty() ? file_.runs_before + file_.run_bytes.size()
                                : running_.front().runs_at;
    }

  private:
    template <typename T>
    void keep(std::vector<T> &records, T record)
    {
        if (keeps_)
            records.push_back(std::move(record));
    }

    void read_state(cursor &in)
    {
        time_ = in.zigzag();
        order_ = in.varint() - 1;
        ended_ = in.varint();
        if (ended_ != file_.counts.collectives || in.varint() != file_.communicators.size())
            throw malformed{"blocks are missing or out of order"};
        if (file_.has_calls &&
            (in.varint() != file_.counts.sends || in.varint() != file_.counts.sites))
            throw malformed{"blocks are missing or out of order"};
        ended_--;
        completed_ = file_.counts.sends - 1;
        send_ = receive_ = {};
    }

    void record(cursor &in)
    {
        const std::uint8_t head = in.byte();
        switch (head & ZCT_TYPE_MASK) {
        case ZCT_END:
            if (file_.has_calls && head != ZCT_END) {
                record_of_calls(in, head);
                break;
            }
            file_.complete = true;
            if (!in.at_end())
                throw malformed{"records after the end of the trace"};
            break;
        case ZCT_COMMUNICATOR:
            communicator(in, head & ZCT_INTER);
            break;
        case ZCT_SEND:
            send(in, head);
            break;
        case ZCT_RECEIVE:
        case ZCT_MATCHED:
            receive(in, head);
            break;
        case ZCT_LOST:
            lost(in);
            break;
        case ZCT_COLLECTIVE:
            collective(in);
            break;
        default:
            collective_end(in);
        }
    }

    /** What versions 2 and 3 add. */
    void record_of_calls(cursor &in, std::uint8_t head)
    {
        switch (head) {
        case ZCT_SITE: {
            site where{};
            where.address = in.varint();
            where.offset = in.varint();
            where.module = in.string();
            where.symbol = in.string();
            file_.counts.sites++;
            keep(file_.sites, std::move(where));
            break;
        }
        case ZCT_CALL:
            call_end(in);
            break;
        case ZCT_UNRECORDED:
            unrecorded_calls(in);
            break;
        case ZCT_CLOCK: {
            clock_record clock{};
            clock.time_ns = next_time(in);
            clock.ahead_ns = in.zigzag();
            clock.error_ns = in.varint();
            file_.clocks.push_back(clock);
            break;
        }
        default:
            throw malformed{"an unknown record"};
        }
    }

    void call_end(cursor &in)
    {
        call c{};
        c.end_ns = next_time(in);
        c.begin_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(c.end_ns) - in.varint());
        const unsigned function = in.byte();
        if (function >= ZCT_NR_FUNCTIONS)
            throw malformed{"an unknown call"};
        c.function = static_cast<zct_function>(function);
        c.site = known_site(in.varint());
        const std::uint64_t nr_sends = in.varint();
        for (std::uint64_t i = 0; i < nr_sends; i++) {
            completed_ = plus(completed_ + 1, in.zigzag());
            if (completed_ >= file_.counts.sends)
                throw malformed{"a call that completed a send that was not begun"};
            keep(c.sends, completed_);
        }
        keep(file_.calls, std::move(c));
    }

    void unrecorded_calls(cursor &in)
    {
        unrecorded u{};
        const unsigned what = in.byte();
        if (what >= ZCT_NR_UNRECORDED)
            throw malformed{"an unknown call"};
        u.what = static_cast<zct_unrecorded>(what);
        u.site = known_site(in.varint());
        u.calls = in.varint();
        u.bytes = in.varint();
        u.ns = in.varint();
        keep(file_.unrecorded_calls, u);
    }

    std::uint32_t known_site(std::uint64_t where) const
    {
        if (where >= file_.counts.sites)
            throw malformed{"a call site that was not announced"};
        return static_cast<std::uint32_t>(where);
    }

    /** Where a send, receive or collective was posted. */
    std::uint32_t posted_at(cursor &in) const
    {
        return file_.has_calls ? known_site(in.varint()) : 0;
    }

    std::int64_t next_time(cursor &in) { return time_ = plus(time_, in.zigzag()); }

    std::uint32_t known_comm(std::uint64_t comm) const
    {
        if (comm >= file_.communicators.size())
            throw malformed{"a communicator that was not announced"};
        return static_cast<std::uint32_t>(comm);
    }

    std::int32_t known_peer(std::uint32_t comm, std::int64_t peer) const
    {
        if (peer < 0 || static_cast<std::uint64_t>(peer) >= file_.communicators[comm].peers())
            throw malformed{"a rank outside its communicator"};
        return static_cast<std::int32_t>(peer);
    }

    /** As many of the world as it has, at most. Each one outside the world costs bytes. */
    member_list members(cursor &in)
    {
        const std::uint64_t count = in.varint();
        const auto processes = static_cast<std::uint64_t>(file_.processes);
        member_list list;
        std::uint64_t of_the_world = 0;
        std::int64_t expected = 0;
        while (list.size() < count) {
            const std::int64_t first = plus(expected, in.zigzag());
            const std::uint64_t n = in.varint();
            if (n == 0 || n > processes || n > count - list.size() || first < -1 ||
                first > file_.processes - static_cast<std::int64_t>(n) || (first < 0 && n > 1))
                throw malformed{"a communicator's member is not a rank of the world"};
            of_the_world += first < 0 ? 0 : n;
            if (of_the_world > processes)
                throw malformed{"a communicator has more members than the world"};
            list.add(static_cast<std::int32_t>(first), static_cast<std::uint32_t>(n));
            expected = first + static_cast<std::int64_t>(n);
        }
        return list;
    }

    void communicator(cursor &in, bool inter)
    {
        members_record record;
        record.inter = inter;
        record.local = members(in);
        if (inter)
            record.remote = members(in);
        file_.communicators.push_back(std::move(record));
    }

    void envelope(cursor &in, unsigned flags, last_values &last)
    {
        if (flags & ZCT_HAS_COMM)
            last.comm = known_comm(in.varint());
        if (flags & ZCT_HAS_PEER)
            last.peer = narrow<std::int32_t>(plus(std::int64_t{last.peer}, in.zigzag()),
                                             "a rank outside its communicator");
        if (flags & ZCT_HAS_TAG)
            last.tag = narrow<std::int32_t>(plus(std::int64_t{last.tag}, in.zigzag()),
                                            "a tag of more than 32 bits");
        if (flags & ZCT_HAS_BYTES)
            last.bytes = in.varint();
        known_peer(known_comm(last.comm), last.peer);
    }

    void send(cursor &in, unsigned head)
    {
        const std::int64_t time = next_time(in);
        envelope(in, head, send_);
        const std::uint64_t number = file_.counts.sends++;
        keep(file_.sends, {time, send_.comm, send_.peer, send_.tag, send_.bytes, number,
                           posted_at(in), file_.has_calls && (head & ZCT_SYNCHRONOUS)});
    }

    void receive(cursor &in, unsigned head)
    {
        receive_record r{};
        r.done_ns = next_time(in);
        r.posted_ns =
            static_cast<std::int64_t>(static_cast<std::uint64_t>(r.done_ns) - in.varint());
        r.order = r.matched = order_ = plus(order_ + 1, in.zigzag());
        envelope(in, head, receive_);
        if (head & ZCT_HAS_ADDR)
            receive_.addr = plus(receive_.addr, in.zigzag());
        if ((head & ZCT_TYPE_MASK) == ZCT_MATCHED)
            r.matched -= in.varint();
        r.site = posted_at(in);
        r.comm = receive_.comm;
        r.peer = receive_.peer;
        r.tag = receive_.tag;
        r.bytes = receive_.bytes;
        r.addr = receive_.addr;
        r.done_order = nr_done_++;
        file_.counts.receives++;
        keep(file_.receives, r);
    }

    void lost(cursor &in)
    {
        lost_record lost{};
        lost.order = in.varint();
        lost.comm = known_comm(in.varint());
        const std::int64_t peer = in.zigzag();
        lost.peer = peer == -1 ? -1 : known_peer(lost.comm, peer);
        lost.tag = narrow<std::int32_t>(in.zigzag(), "a tag of more than 32 bits");
        keep(file_.lost, lost);
    }

    void collective(cursor &in)
    {
        collective_record c{};
        c.begin_ns = next_time(in);
        c.order = order_ = plus(order_ + 1, in.zigzag());
        const unsigned kind = in.byte();
        if (kind == ZCT_P2P || kind >= ZCT_NR_KINDS)
            throw malformed{"an unknown collective"};
        c.kind = static_cast<zct_kind>(kind);
        c.comm = known_comm(in.varint());
        c.root = narrow<std::int32_t>(in.zigzag(), "a root of more than 32 bits");
        c.site = posted_at(in);
        c.runs_at = file_.runs_before + file_.run_bytes.size();
        const auto runs = in.rest();
        take_runs(in, file_.communicators[c.comm].peers(), [](const run_record &) {});
        const auto taken = runs.first(runs.size() - in.rest().size());
        if (keeps_)
            file_.run_bytes.insert(file_.run_bytes.end(), taken.begin(), taken.end());
        file_.counts.collectives++;
        running_.push_back(c);
    }

    void collective_end(cursor &in)
    {
        const std::int64_t time = next_time(in);
        ended_ = plus(ended_ + 1, in.zigzag());
        const std::uint64_t kept = file_.counts.collectives - running_.size();
        if (ended_ < kept || ended_ >= file_.counts.collectives || running_[ended_ - kept].ended)
            throw malformed{"the end of a collective that did not begin"};
        collective_record &c = running_[ended_ - kept];
        c.ended = true;
        c.end_ns = time;
        c.done_order = nr_done_++;
        for (; !running_.empty() && running_.front().ended; running_.pop_front())
            keep(file_.collectives, running_.front());
    }

    file_records &file_;
    bool keeps_;
    std::int64_t time_ = 0;
    std::uint64_t order_ = 0;
    std::uint64_t ended_ = 0;
    std::uint64_t completed_ = 0;
    std::uint64_t nr_done_ = 0;
    std::deque<collective_record> running_; /* from the first on that has not ended */
    last_values send_;
    last_values receive_;
};

} // namespace zc::zct

#endif
