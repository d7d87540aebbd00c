/* SPDX-License-Identifier: BSD-3-Clause */
#include "record.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <string>

#include "crc32c.h"
#include "decoder.h"

namespace zc::zct {

namespace {

/* More processes are damage, not a machine: what reads a run has tables of them. */
constexpr std::uint64_t kMaxProcesses = std::uint64_t{1} << 24;
/* Nanoseconds, some 36 years: more fit into a time, but not into the sum of some. */
constexpr double kMaxDrift = 0x1p60;
constexpr std::size_t kHeaderHead = ZCT_MAGIC_BYTES + 8;

std::uint32_t u32_at(std::span<const std::uint8_t> bytes, std::size_t at)
{
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; i++)
        value |= static_cast<std::uint32_t>(bytes[at + i]) << (8 * i);
    return value;
}

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

/** Returns the header's length. */
std::size_t read_header(input &from, file_records &file)
{
    const auto head = from.bytes(0, std::min<std::uint64_t>(kHeaderHead, from.size()));
    if (head.size() < ZCT_MAGIC_BYTES || std::memcmp(head.data(), ZCT_MAGIC, ZCT_MAGIC_BYTES) != 0)
        throw malformed{"not a zc-trace file"};
    if (head.size() < kHeaderHead)
        throw malformed{"ends inside its header"};
    const std::uint32_t version = u32_at(head, ZCT_MAGIC_BYTES);
    file.has_calls = version == ZCT_VERSION_CALLS || version == ZCT_VERSION_CALLS_OLD;
    if (version != ZCT_VERSION && !file.has_calls)
        throw malformed{"written by another version of zc-trace; this one reads versions 1 to 3"};
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

/* Times of a damaged file may be any: they wrap. */
std::int64_t minus(std::int64_t time, std::int64_t other)
{
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(time) -
                                     static_cast<std::uint64_t>(other));
}

/** Moves times onto rank 0's clock, if that was compared twice. */
class clock_correction {
  public:
    explicit clock_correction(const std::vector<clock_record> &clocks)
    {
        if (clocks.size() < 2)
            return;
        first_ = clocks.front();
        const clock_record &last = clocks.back();
        const auto span = static_cast<double>(minus(last.time_ns, first_.time_ns));
        needed_ = span > 0;
        if (needed_)
            drift_ = static_cast<double>(minus(last.ahead_ns, first_.ahead_ns)) / span;
    }

    void correct(file_records &file) const
    {
        if (!needed_)
            return;
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

  private:
    void correct(std::int64_t &time) const
    {
        const double drifted = drift_ * static_cast<double>(minus(time, first_.time_ns));
        if (std::abs(drifted) >= kMaxDrift)
            throw malformed{"its clocks were implausibly far apart"};
        time = minus(minus(time, first_.ahead_ns), static_cast<std::int64_t>(drifted));
    }

    bool needed_ = false;
    double drift_ = 0;
    clock_record first_{};
};

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
            break;
        }
        decoder.block(*payload);
        at += ZCT_BLOCK_HEAD_BYTES + payload->size();
    }
    decoder.finish();
}

/** What was seen of a file's records goes. @runs_at: where the runs begin that are needed still. */
void forget(file_records &file, std::uint64_t runs_at)
{
    file.sends.clear();
    file.receives.clear();
    file.lost.clear();
    file.collectives.clear();
    file.sites.clear();
    file.calls.clear();
    file.unrecorded_calls.clear();
    file.clocks.clear();
    file.run_bytes.erase(file.run_bytes.begin(),
                         file.run_bytes.begin() +
                             static_cast<std::ptrdiff_t>(runs_at - file.runs_before));
    file.runs_before = runs_at;
}

/** As each_block() of record.h, of a file whose whole blocks are @in. */
void decode_blocks(input &in, const file_records &counted,
                   const std::function<void(file_records &)> &see)
{
    const clock_correction clocks(counted.clocks);
    file_records part{};
    part.rank = counted.rank;
    part.processes = counted.processes;
    part.has_calls = counted.has_calls;
    decoder decoder(part, true);
    const auto show = [&] {
        clocks.correct(part);
        see(part);
        forget(part, decoder.runs_at());
    };
    for (std::uint64_t at = counted.header_bytes; at < in.size();) {
        const auto payload = block_at(in, at);
        if (!payload)
            throw malformed{"was changed while it was read"};
        decoder.block(*payload);
        at += ZCT_BLOCK_HEAD_BYTES + payload->size();
        show();
    }
    decoder.finish();
    show();
}

file_records decode(std::istream &in, std::uint64_t size, bool keeps, const std::string &name)
{
    file_records file{};
    file.file_bytes = size;
    try {
        input bytes(in, size);
        file.header_bytes = read_header(bytes, file);
        read_blocks(bytes, file.header_bytes, file, keeps);
        clock_correction(file.clocks).correct(file);
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

void each_block(const std::filesystem::path &file, const file_records &counted,
                const std::function<void(file_records &)> &see)
{
    errno = 0;
    std::ifstream in(file, std::ios::binary);
    if (!in)
        throw error(file.string() + ": " + std::strerror(errno ? errno : EIO));
    try {
        input bytes(in, counted.file_bytes - counted.cut_bytes);
        decode_blocks(bytes, counted, see);
    } catch (const malformed &m) {
        throw error(file.string() + ": " + m.reason);
    }
}

} // namespace zc::zct
