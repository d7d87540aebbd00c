/* SPDX-License-Identifier: BSD-3-Clause */
#include "record.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <span>
#include <string>

#include "crc32c.h"

namespace zc::zct {

namespace {

/* Communicators of a file together: more is damage, not a machine. */
constexpr std::uint64_t kMaxMembers = std::uint64_t{1} << 24;
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

/** Decodes the blocks of one file, in order. */
class decoder {
  public:
    explicit decoder(file_records &file) : file_(file) {}

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
    void read_state(cursor &in)
    {
        time_ = in.zigzag();
        order_ = in.varint() - 1;
        ended_ = in.varint();
        if (ended_ != file_.collectives.size() || in.varint() != file_.communicators.size())
            throw malformed{"blocks are missing or out of order"};
        if (file_.has_calls &&
            (in.varint() != file_.sends.size() || in.varint() != file_.sites.size()))
            throw malformed{"blocks are missing or out of order"};
        ended_--;
        completed_ = file_.sends.size() - 1;
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
            file_.sites.push_back(std::move(where));
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
            if (completed_ >= file_.sends.size())
                throw malformed{"a call that completed a send that was not begun"};
            c.sends.push_back(completed_);
        }
        file_.calls.push_back(std::move(c));
    }

    std::uint32_t known_site(std::uint64_t where) const
    {
        if (where >= file_.sites.size())
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

    std::vector<std::int32_t> members(cursor &in)
    {
        const std::uint64_t count = in.varint();
        if (count > kMaxMembers - nr_members_)
            throw malformed{"implausibly large communicators"};
        nr_members_ += count;
        std::vector<std::int32_t> ranks;
        std::int64_t expected = 0;
        while (ranks.size() < count) {
            const std::int64_t first = plus(expected, in.zigzag());
            const std::uint64_t n = in.varint();
            if (n == 0 || n > count - ranks.size() || first < -1 ||
                first > file_.processes - static_cast<std::int64_t>(n) || (first < 0 && n > 1))
                throw malformed{"a communicator's member is not a rank of the world"};
            for (std::uint64_t i = 0; i < n; i++)
                ranks.push_back(static_cast<std::int32_t>(first + static_cast<std::int64_t>(i)));
            expected = first + static_cast<std::int64_t>(n);
        }
        return ranks;
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
        file_.sends.push_back({time, send_.comm, send_.peer, send_.tag, send_.bytes,
                               file_.sends.size(), posted_at(in)});
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
        file_.receives.push_back(r);
    }

    void lost(cursor &in)
    {
        lost_record lost{};
        lost.order = in.varint();
        lost.comm = known_comm(in.varint());
        const std::int64_t peer = in.zigzag();
        lost.peer = peer == -1 ? -1 : known_peer(lost.comm, peer);
        lost.tag = narrow<std::int32_t>(in.zigzag(), "a tag of more than 32 bits");
        file_.lost.push_back(lost);
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
            c.runs.push_back(run);
            if (direction == ZCT_RUN_RECEIVE)
                run.addr += (count - 1) * run.stride + run.bytes;
        }
        file_.collectives.push_back(std::move(c));
    }

    void collective_end(cursor &in)
    {
        const std::int64_t time = next_time(in);
        ended_ = plus(ended_ + 1, in.zigzag());
        if (ended_ >= file_.collectives.size() || file_.collectives[ended_].ended)
            throw malformed{"the end of a collective that did not begin"};
        collective_record &c = file_.collectives[ended_];
        c.ended = true;
        c.end_ns = time;
        c.done_order = nr_done_++;
    }

    file_records &file_;
    std::int64_t time_ = 0;
    std::uint64_t order_ = 0;
    std::uint64_t ended_ = 0;
    std::uint64_t completed_ = 0;
    std::uint64_t nr_done_ = 0;
    std::uint64_t nr_members_ = 0;
    last_values send_;
    last_values receive_;
};

/** Returns the header's length. */
std::size_t read_header(std::span<const std::uint8_t> bytes, file_records &file)
{
    if (bytes.size() < ZCT_MAGIC_BYTES ||
        std::memcmp(bytes.data(), ZCT_MAGIC, ZCT_MAGIC_BYTES) != 0)
        throw malformed{"not a zc-trace file"};
    if (bytes.size() < kHeaderHead)
        throw malformed{"ends inside its header"};
    const std::uint32_t version = u32_at(bytes, ZCT_MAGIC_BYTES);
    if (version != ZCT_VERSION && version != ZCT_VERSION_CALLS)
        throw malformed{"written by another version of zc-trace; this one reads versions 1 and 2"};
    file.has_calls = version == ZCT_VERSION_CALLS;
    const std::size_t length = u32_at(bytes, ZCT_MAGIC_BYTES + 4);
    if (length > ZCT_MAX_HEADER_BYTES)
        throw malformed{"its header is damaged"};
    if (bytes.size() < kHeaderHead + length + 4)
        throw malformed{"ends inside its header"};
    if (zc_crc32c(0, bytes.data(), kHeaderHead + length) != u32_at(bytes, kHeaderHead + length))
        throw malformed{"its header is damaged"};

    cursor in(bytes.subspan(kHeaderHead, length));
    constexpr std::uint64_t kMax = std::numeric_limits<std::int32_t>::max();
    const std::uint64_t rank = in.varint();
    const std::uint64_t processes = in.varint();
    if (processes > kMax || rank >= processes)
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

/* Ordinary blocks are smaller; looking for larger ones could take very long. */
constexpr std::size_t kSoughtBlock = std::size_t{128} << 10;

/** Is there a whole block anywhere in the bytes? Only asked of damaged files. */
bool block_within(std::span<const std::uint8_t> bytes)
{
    for (std::size_t at = 0; at + ZCT_BLOCK_HEAD_BYTES < bytes.size(); at++) {
        const std::size_t length = u32_at(bytes, at);
        if (length < 4 || length > kSoughtBlock ||
            length > bytes.size() - at - ZCT_BLOCK_HEAD_BYTES)
            continue;
        const std::uint32_t crc =
            zc_crc32c(zc_crc32c(0, &bytes[at], 4), &bytes[at + ZCT_BLOCK_HEAD_BYTES], length);
        if (crc == u32_at(bytes, at + 4))
            return true;
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

void read_blocks(std::span<const std::uint8_t> rest, file_records &file)
{
    decoder decoder(file);
    while (!rest.empty()) {
        const std::size_t room = rest.size() - std::min<std::size_t>(rest.size(), 8);
        const std::size_t length = rest.size() < 4 ? 0 : u32_at(rest, 0);
        const bool whole = rest.size() >= ZCT_BLOCK_HEAD_BYTES && length <= room;
        if (!whole || zc_crc32c(zc_crc32c(0, rest.data(), 4), rest.data() + ZCT_BLOCK_HEAD_BYTES,
                                length) != u32_at(rest, 4)) {
            if (file.complete)
                throw malformed{"bytes after the end of the trace"};
            if (rest.size() > 1 && block_within(rest.subspan(1)))
                throw malformed{"a block in the middle is damaged"};
            file.cut_bytes = rest.size();
            return;
        }
        decoder.block(rest.subspan(ZCT_BLOCK_HEAD_BYTES, length));
        rest = rest.subspan(ZCT_BLOCK_HEAD_BYTES + length);
    }
}

} // namespace

file_records decode_records(const std::vector<std::uint8_t> &bytes, const std::string &name)
{
    file_records file{};
    file.file_bytes = bytes.size();
    try {
        const std::span<const std::uint8_t> all(bytes);
        read_blocks(all.subspan(read_header(all, file)), file);
        correct_times(file);
    } catch (const malformed &m) {
        throw error(name + ": " + m.reason);
    }
    return file;
}

file_records read_records(const std::filesystem::path &file)
{
    errno = 0;
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    const auto size = in ? static_cast<std::streamoff>(in.tellg()) : -1;
    if (size < 0 || std::filesystem::is_directory(file))
        throw error(file.string() + ": " +
                    (in ? "is a folder" : std::strerror(errno ? errno : EIO)));
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
    in.seekg(0);
    in.read(reinterpret_cast<char *>(bytes.data()), size);
    if (in.gcount() != size)
        throw error(file.string() + ": " + std::strerror(errno ? errno : EIO));
    return decode_records(bytes, file.string());
}

} // namespace zc::zct
