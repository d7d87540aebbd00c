/* SPDX-License-Identifier: BSD-3-Clause */
#include "record.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "crc32c.h"

namespace zc::zct {

namespace {

/* More processes are damage, not a machine: what reads a run has tables of them. */
constexpr std::uint64_t kMaxProcesses = std::uint64_t{1} << 24;
constexpr std::size_t kHeaderHead = ZCT_MAGIC_BYTES + 8;

std::uint32_t u32_at(std::span<const std::uint8_t> bytes, std::size_t at)
{
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; i++)
        value |= static_cast<std::uint32_t>(bytes[at + i]) << (8 * i);
    return value;
}

/** Thrown inside a block or header; becomes an error with the file's name. */
struct malformed {
    const char *reason;
};

/** A file of which the bytes that are asked for are in memory. */
class input {
  public:
    input(std::istream &in, std::uint64_t size) : in_(in), size_(size) {}

    std::uint64_t size() const { return size_; }

    /** Bytes that the file has; valid until the next call. */
    std::span<const std::uint8_t> bytes(std::uint64_t at, std::size_t length)
    {
        errno = 0;
        if (buffer_.size() < length)
            buffer_.resize(length);
        if (at != at_)
            in_.seekg(static_cast<std::streamoff>(at));
        in_.read(reinterpret_cast<char *>(buffer_.data()), static_cast<std::streamsize>(length));
        if (!in_)
            throw malformed{std::strerror(errno ? errno : EIO)};
        at_ = at + length;
        return std::span(buffer_).first(length);
    }

  private:
    std::istream &in_;
    std::uint64_t size_;
    std::uint64_t at_ = 0;
    std::vector<std::uint8_t> buffer_;
};

/** Takes fields off the front of some bytes. */
class cursor {
  public:
    explicit cursor(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    bool at_end() const { return at_ == bytes_.size(); }

    std::uint8_t byte()
    {
        if (at_end())
            throw malformed{"a record ends too early"};
        return bytes_[at_++];
    }

    std::uint64_t varint()
    {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const std::uint64_t part = byte();
            if (shift == 63 && part > 1)
                break;
            value |= (part & 0x7f) << shift;
            if (part < 0x80)
                return value;
        }
        throw malformed{"a number has more than 64 bits"};
    }

    std::int64_t zigzag()
    {
        const std::uint64_t value = varint();
        return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
    }

    std::uint64_t fixed64()
    {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < 8; i++)
            value |= static_cast<std::uint64_t>(byte()) << (8 * i);
        return value;
    }

    std::string string()
    {
        const std::uint64_t len = varint();
        if (len > bytes_.size() - at_)
            throw malformed{"a record ends too early"};
        const auto from = bytes_.subspan(at_, len);
        at_ += len;
        return {from.begin(), from.end()};
    }

  private:
    std::span<const std::uint8_t> bytes_;
    std::size_t at_ = 0;
};

template <typename T>
T narrow(std::int64_t value, const char *reason)
{
    if (value < std::int64_t{std::numeric_limits<T>::min()} ||
        value > std::int64_t{std::numeric_limits<T>::max()})
        throw malformed{reason};
    return static_cast<T>(value);
}

/* Deltas are taken modulo 2^64, so that no file can overflow a sum. */
std::uint64_t plus(std::uint64_t value, std::int64_t delta)
{
    return value + static_cast<std::uint64_t>(delta);
}

std::int64_t plus(std::int64_t value, std::int64_t delta)
{
    return static_cast<std::int64_t>(plus(static_cast<std::uint64_t>(value), delta));
}

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

    /** What version 2 adds. */
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
        case ZCT_CLOCK: {
            clock_record clock{};
            clock.time_ns = next_time(in);
            clock.ahead_ns = in.zigzag();
            clock.error_ns = in.varint();
            keep(file_.clocks, clock);
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

    /** Those a rank of the communicator names when it sends or receives. */
    std::size_t peers(std::uint32_t comm) const
    {
        const members_record &members = file_.communicators[comm];
        return members.inter ? members.remote.size() : members.local.size();
    }

    std::int32_t known_peer(std::uint32_t comm, std::int64_t peer) const
    {
        if (peer < 0 || static_cast<std::uint64_t>(peer) >= peers(comm))
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
        keep(file_.sends,
             {time, send_.comm, send_.peer, send_.tag, send_.bytes, number, posted_at(in)});
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
        run_record last[3] = {};
        std::int64_t next[3] = {};
        while (const unsigned direction = in.byte()) {
            if (direction > ZCT_RUN_RECEIVE)
                throw malformed{"an unknown direction"};
            run_record &run = last[direction];
            run.direction = static_cast<zct_direction>(direction);
            run.first = known_peer(c.comm, plus(next[direction], in.zigzag()));
            const std::uint64_t count = in.varint();
            if (count == 0 || count > peers(c.comm) - static_cast<std::size_t>(run.first))
                throw malformed{"a rank outside its communicator"};
            run.count = static_cast<std::uint32_t>(count);
            next[direction] = run.first + static_cast<std::int64_t>(count);
            run.bytes = plus(run.bytes, in.zigzag());
            if (direction == ZCT_RUN_RECEIVE) {
                run.addr = plus(run.addr, in.zigzag());
                run.stride = count > 1 ? plus(run.bytes, in.zigzag()) : 0;
            }
            keep(c.runs, run);
            if (direction == ZCT_RUN_RECEIVE)
                run.addr += (count - 1) * run.stride + run.bytes;
        }
        file_.counts.collectives++;
        has_ended_.push_back(false);
        keep(file_.collectives, std::move(c));
    }

    void collective_end(cursor &in)
    {
        const std::int64_t time = next_time(in);
        ended_ = plus(ended_ + 1, in.zigzag());
        if (ended_ >= has_ended_.size() || has_ended_[ended_])
            throw malformed{"the end of a collective that did not begin"};
        has_ended_[ended_] = true;
        const std::uint64_t done_order = nr_done_++;
        if (!keeps_)
            return;
        collective_record &c = file_.collectives[ended_];
        c.ended = true;
        c.end_ns = time;
        c.done_order = done_order;
    }

    file_records &file_;
    bool keeps_;
    std::int64_t time_ = 0;
    std::uint64_t order_ = 0;
    std::uint64_t ended_ = 0;
    std::uint64_t completed_ = 0;
    std::uint64_t nr_done_ = 0;
    std::vector<bool> has_ended_; /* of each collective */
    last_values send_;
    last_values receive_;
};

/** Returns the header's length. */
std::size_t read_header(input &from, file_records &file)
{
    const auto head = from.bytes(0, std::min<std::uint64_t>(kHeaderHead, from.size()));
    if (head.size() < ZCT_MAGIC_BYTES || std::memcmp(head.data(), ZCT_MAGIC, ZCT_MAGIC_BYTES) != 0)
        throw malformed{"not a zc-trace file"};
    if (head.size() < kHeaderHead)
        throw malformed{"ends inside its header"};
    const std::uint32_t version = u32_at(head, ZCT_MAGIC_BYTES);
    if (version != ZCT_VERSION && version != ZCT_VERSION_CALLS)
        throw malformed{"written by another version of zc-trace; this one reads versions 1 and 2"};
    file.has_calls = version == ZCT_VERSION_CALLS;
    const std::size_t length = u32_at(head, ZCT_MAGIC_BYTES + 4);
    if (length > ZCT_MAX_HEADER_BYTES)
        throw malformed{"its header is damaged"};
    if (from.size() < kHeaderHead + length + 4)
        throw malformed{"ends inside its header"};
    const auto bytes = from.bytes(0, kHeaderHead + length + 4);
    if (zc_crc32c(0, bytes.data(), kHeaderHead + length) != u32_at(bytes, kHeaderHead + length))
        throw malformed{"its header is damaged"};

    cursor in(bytes.subspan(kHeaderHead, length));
    const std::uint64_t rank = in.varint();
    const std::uint64_t processes = in.varint();
    if (processes > kMaxProcesses)
        throw malformed{"an implausibly large world"};
    if (rank >= processes)
        throw malformed{"its rank is not a rank of the world"};
    file.rank = static_cast<std::int32_t>(rank);
    file.processes = static_cast<std::int32_t>(processes);
    file.run = in.fixed64();
    file.start_ns = in.fixed64();
    file.mpi = in.string();
    file.program = in.string();
    file.command = in.string();
    file.host = in.string();
    return kHeaderHead + length + 4;
}

/** What is in the block that begins at @at, if a whole one does. */
std::optional<std::span<const std::uint8_t>> block_at(input &in, std::uint64_t at)
{
    if (in.size() - at < ZCT_BLOCK_HEAD_BYTES)
        return {};
    const auto head = in.bytes(at, ZCT_BLOCK_HEAD_BYTES);
    const std::size_t length = u32_at(head, 0);
    const std::uint32_t crc = u32_at(head, 4);
    const std::uint32_t crc_of_head = zc_crc32c(0, head.data(), 4);
    if (length > ZCT_MAX_BLOCK_BYTES || length > in.size() - at - ZCT_BLOCK_HEAD_BYTES)
        return {};
    const auto payload = in.bytes(at + ZCT_BLOCK_HEAD_BYTES, length);
    if (zc_crc32c(crc_of_head, payload.data(), length) != crc)
        return {};
    return payload;
}

/* Ordinary blocks are smaller; looking for larger ones could take very long. */
constexpr std::size_t kSoughtBlock = std::size_t{128} << 10;
constexpr std::size_t kWindow = std::size_t{1} << 20;

/* So much is read again and again for checksums before the search gives up: a second's work, and
 * more than an ordinary block that is damaged takes. In a file that was made for it every byte
 * could begin a large block. */
constexpr std::uint64_t kMaxSummed = std::uint64_t{1} << 32;

/** Is there a whole block anywhere from @begin on? Only asked of damaged files. */
bool block_within(input &in, std::uint64_t begin)
{
    std::uint64_t summed = 0;
    for (; begin < in.size(); begin += kWindow) {
        const auto bytes =
            in.bytes(begin, std::min<std::uint64_t>(kWindow + ZCT_BLOCK_HEAD_BYTES + kSoughtBlock,
                                                    in.size() - begin));
        for (std::size_t at = 0; at < kWindow && at + ZCT_BLOCK_HEAD_BYTES < bytes.size(); at++) {
            const std::size_t length = u32_at(bytes, at);
            if (length < 4 || length > kSoughtBlock ||
                length > bytes.size() - at - ZCT_BLOCK_HEAD_BYTES)
                continue;
            summed += length;
            if (summed > kMaxSummed)
                return false;
            const std::uint32_t crc =
                zc_crc32c(zc_crc32c(0, &bytes[at], 4), &bytes[at + ZCT_BLOCK_HEAD_BYTES], length);
            if (crc == u32_at(bytes, at + 4))
                return true;
        }
    }
    return false;
}

/** Moves the times onto rank 0's clock, if that was compared twice. */
void correct_times(file_records &file)
{
    if (file.clocks.size() < 2)
        return;
    const clock_record first = file.clocks.front();
    const clock_record last = file.clocks.back();
    const auto span = static_cast<double>(last.time_ns - first.time_ns);
    if (span <= 0)
        return;
    const auto drift = static_cast<double>(last.ahead_ns - first.ahead_ns) / span;
    const auto correct = [&](std::int64_t &time) {
        const double since = static_cast<double>(time - first.time_ns);
        time -= first.ahead_ns + static_cast<std::int64_t>(drift * since);
    };
    for (send_record &s : file.sends)
        correct(s.time_ns);
    for (receive_record &r : file.receives) {
        correct(r.posted_ns);
        correct(r.done_ns);
    }
    for (collective_record &c : file.collectives) {
        correct(c.begin_ns);
        correct(c.end_ns);
    }
    for (call &c : file.calls) {
        correct(c.begin_ns);
        correct(c.end_ns);
    }
}

void read_blocks(input &in, std::uint64_t at, file_records &file, bool keeps)
{
    decoder decoder(file, keeps);
    while (at < in.size()) {
        const auto payload = block_at(in, at);
        if (!payload) {
            if (file.complete)
                throw malformed{"bytes after the end of the trace"};
            if (block_within(in, at + 1))
                throw malformed{"a block in the middle is damaged"};
            file.cut_bytes = in.size() - at;
            return;
        }
        decoder.block(*payload);
        at += ZCT_BLOCK_HEAD_BYTES + payload->size();
    }
}

file_records decode(std::istream &in, std::uint64_t size, bool keeps, const std::string &name)
{
    file_records file{};
    file.file_bytes = size;
    try {
        input bytes(in, size);
        const std::size_t header = read_header(bytes, file);
        read_blocks(bytes, header, file, keeps);
        correct_times(file);
    } catch (const malformed &m) {
        throw error(name + ": " + m.reason);
    }
    return file;
}

file_records decode_file(const std::filesystem::path &file, bool keeps)
{
    errno = 0;
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    const auto size = in ? static_cast<std::streamoff>(in.tellg()) : -1;
    if (size < 0 || std::filesystem::is_directory(file))
        throw error(file.string() + ": " +
                    (in ? "is a folder" : std::strerror(errno ? errno : EIO)));
    in.seekg(0);
    return decode(in, static_cast<std::uint64_t>(size), keeps, file.string());
}

} // namespace

file_records decode_records(const std::vector<std::uint8_t> &bytes, const std::string &name)
{
    std::istringstream in(std::string(bytes.begin(), bytes.end()));
    return decode(in, bytes.size(), true, name);
}

file_records read_records(const std::filesystem::path &file)
{
    return decode_file(file, true);
}

file_records count_records(const std::filesystem::path &file)
{
    return decode_file(file, false);
}

} // namespace zc::zct
