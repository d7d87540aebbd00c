/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfer.h"

#include <algorithm>
#include <cstring>

#include "clock.h"
#include "crc32c.h"
#include "error.h"

namespace zc::migrate {

namespace {

using trailer = std::uint32_t;

double lap_ms(double &mark)
{
    const double now = seconds();
    const double passed = (now - mark) * 1e3;
    mark = now;
    return passed;
}

/* Of the image of segment @number, and of that number: each is taken for what it is. */
trailer checksum(std::uint64_t number, std::span<const std::byte> image)
{
    return zc_crc32c(static_cast<std::uint32_t>(number), image.data(), image.size());
}

/* Room for one segment of @a and its checksum. */
std::size_t packet_bound(const array &a)
{
    return segment_bound(a) + sizeof(trailer);
}

} // namespace

transfer::~transfer()
{
    /* What could not be brought to its end is still under way, to a peer that may wake up: MPI
     * reads and writes there as long as this process lives, so it keeps request and memory. */
    for (std::size_t slot = 0; slot < kAlive; slot++)
        if (requests_[slot] != connection::kNone)
            memory_[slot].give_away();
}

std::uint64_t transfer::segments(const array &a)
{
    return (a.units() + segment_units(a) - 1) / segment_units(a);
}

void transfer::heed_successor()
{
    if (auto said = line_.poll())
        throw error(EPIPE,
                    said->what == word::failed ? said->text : "the successor speaks out of turn");
}

void transfer::heed_predecessor()
{
    if (auto said = line_.poll())
        throw error(EPIPE, "the predecessor gave up");
}

void transfer::send(const array &source, const image_header &header, effort &effort, bool corrupt)
{
    const auto interrupt = [this] { heed_successor(); };
    double mark = seconds();
    std::uint64_t first = 0;
    for (std::uint64_t i = 0; i < segments(source); i++) {
        const std::size_t slot = i % kAlive;
        line_.peer().make_progress();
        line_.finish(requests_[slot], interrupt);
        effort.transfer_ms += lap_ms(mark);

        const std::uint64_t count = std::min(segment_units(source), source.units() - first);
        memory_[slot].reserve(packet_bound(source));
        image_writer writer(memory_[slot], header, checksums::none);
        writer.write(source, first, count);
        const std::span<const std::byte> image = writer.finish();
        const trailer crc = checksum(i, image);
        std::memcpy(memory_[slot].data() + image.size(), &crc, sizeof crc);
        if (corrupt)
            memory_[slot].data()[image.size() / 2] ^= std::byte{0x10};
        first += count;
        effort.image_bytes += image.size();
        effort.zero_bytes += writer.zero_bytes();
        effort.build_ms += lap_ms(mark);
        line_.start_segment({image.data(), image.size() + sizeof crc}, requests_[slot]);
    }
    for (connection::ticket &request : requests_)
        line_.finish(request, interrupt);
    effort.transfer_ms += lap_ms(mark);
}

void transfer::receive(const array &target, effort &effort)
{
    const std::uint64_t all = segments(target);
    auto expect = [&](std::uint64_t i) {
        image_memory &memory = memory_[i % kAlive];
        memory.reserve(packet_bound(target));
        line_.expect_segment({memory.data(), packet_bound(target)}, requests_[i % kAlive]);
    };
    const auto interrupt = [this] { heed_predecessor(); };
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(all, kAlive); i++)
        expect(i);
    double mark = seconds();
    std::uint64_t first = 0;
    for (std::uint64_t i = 0; i < all; i++) {
        line_.peer().make_progress();
        const std::size_t bytes = line_.finish(requests_[i % kAlive], interrupt);
        effort.transfer_ms += lap_ms(mark);
        const std::byte *data = memory_[i % kAlive].data();
        trailer crc = 0;
        if (bytes > sizeof crc)
            std::memcpy(&crc, data + bytes - sizeof crc, sizeof crc);
        if (bytes <= sizeof crc || checksum(i, {data, bytes - sizeof crc}) != crc)
            throw error(EBADMSG, "image of '" + target.name +
                                     "' was corrupted in transit: its checksum differs");
        const std::uint64_t count = std::min(segment_units(target), target.units() - first);
        image_reader({data, bytes - sizeof crc}, checksums::none).read(target, first, count);
        first += count;
        effort.restore_ms += lap_ms(mark);
        if (i + kAlive < all)
            expect(i + kAlive);
    }
}

void transfer::send_whole(std::span<const std::byte> image, effort &effort)
{
    const double begin = seconds();
    for (std::uint64_t at = 0; at < image.size(); at += kPart) {
        line_.start_segment(image.subspan(at, std::min<std::uint64_t>(kPart, image.size() - at)),
                            requests_[0]);
        line_.finish(requests_[0], [this] { heed_successor(); });
    }
    effort.transfer_ms += ms_since(begin);
}

std::span<const std::byte> transfer::receive_whole(std::uint64_t bytes, effort &effort)
{
    const double begin = seconds();
    memory_[0].reserve(bytes);
    for (std::uint64_t at = 0; at < bytes; at += kPart) {
        const std::uint64_t part = std::min(kPart, bytes - at);
        line_.expect_segment({memory_[0].data() + at, part}, requests_[0]);
        const std::size_t came = line_.finish(requests_[0], [this] { heed_predecessor(); });
        if (came != part)
            throw error(EBADMSG, "the predecessor's image was cut short in transit");
    }
    effort.transfer_ms += ms_since(begin);
    return {memory_[0].data(), bytes};
}

bool transfer::is_under_way() const noexcept
{
    return std::ranges::any_of(requests_,
                               [](connection::ticket one) { return one != connection::kNone; });
}

void transfer::finish()
{
    for (connection::ticket &request : requests_)
        line_.finish(request, [] {});
}

void transfer::cancel()
{
    for (connection::ticket &request : requests_)
        if (request != connection::kNone)
            line_.peer().cancel(request);
    finish();
}

} // namespace zc::migrate
