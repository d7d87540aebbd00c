/* SPDX-License-Identifier: BSD-3-Clause */
#include "layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "error.h"

namespace zc::migrate {

namespace {

/* Beyond that a type of unlike elements is not searched for what repeats in it. */
constexpr std::uint64_t kMostSearched = 1 << 22;

/** Neighbours of one type joined. */
std::vector<layout::member> joined(const std::vector<layout::part> &parts)
{
    std::vector<layout::member> all;
    for (const layout::part &one : parts)
        if (!all.empty() && all.back().type == one.type)
            all.back().count += one.count;
        else
            all.push_back({one.type, one.count});
    return all;
}

/** Length of the shortest sequence that @all is a multiple of. */
std::size_t period(const std::vector<element> &all)
{
    /* border[i]: the longest proper beginning of the first i + 1 that is their end, too. */
    std::vector<std::uint32_t> border(all.size(), 0);
    for (std::size_t i = 1; i < all.size(); i++) {
        std::uint32_t length = border[i - 1];
        while (length > 0 && all[i] != all[length])
            length = border[length - 1];
        border[i] = length + (all[i] == all[length] ? 1 : 0);
    }
    const std::size_t shortest = all.size() - border.back();
    return all.size() % shortest == 0 ? shortest : all.size();
}

} // namespace

layout::layout(std::vector<part> parts, std::int64_t extent) : extent_(extent)
{
    std::erase_if(parts, [](const part &one) { return one.count == 0; });
    if (parts.empty())
        throw error(EINVAL, "a type without data");
    if (extent < 0)
        throw error(ENOTSUP, "a type whose extent is negative");
    if (parts.size() > kMostParts)
        throw error(ENOTSUP,
                    "a type of more than " + std::to_string(kMostParts) + " pieces of memory");
    begin_ = parts.front().offset;
    end_ = begin_;
    for (const part &one : parts) {
        const std::uint64_t bytes = one.count * size_of(one.type);
        if (!pieces_.empty() &&
            pieces_.back().offset + static_cast<std::int64_t>(pieces_.back().bytes) == one.offset)
            pieces_.back().bytes += bytes;
        else
            pieces_.push_back({one.offset, packed_bytes_, bytes});
        packed_bytes_ += bytes;
        begin_ = std::min(begin_, one.offset);
        end_ = std::max(end_, one.offset + static_cast<std::int64_t>(bytes));
    }
    dense_ =
        pieces_.size() == 1 && begin_ == 0 && packed_bytes_ == static_cast<std::uint64_t>(extent);
    find_unit(parts);
}

void layout::find_unit(const std::vector<part> &parts)
{
    unit_ = joined(parts);
    const std::uint64_t elements =
        std::accumulate(unit_.begin(), unit_.end(), std::uint64_t{0},
                        [](std::uint64_t sum, const member &one) { return sum + one.count; });
    if (unit_.size() == 1) {
        unit_[0].count = 1;
    } else if (elements <= kMostSearched) {
        std::vector<element> all;
        for (const member &one : unit_)
            all.insert(all.end(), one.count, one.type);
        all.resize(period(all));
        unit_.clear();
        for (const element one : all)
            if (!unit_.empty() && unit_.back().type == one)
                unit_.back().count++;
            else
                unit_.push_back({one, 1});
    }
    if (unit_.size() > kMostMembers)
        throw error(ENOTSUP, "a type of more than " + std::to_string(kMostMembers) +
                                 " groups of basic elements that do not repeat");
    for (const member &one : unit_)
        unit_bytes_ += one.count * size_of(one.type);
    if (unit_bytes_ > kMostUnitBytes)
        throw error(ENOTSUP, "a type of unlike elements of more than 1 MiB that do not repeat");
}

std::string layout::name() const
{
    const auto times = [](std::uint64_t count) {
        return count == 1 ? "" : "[" + std::to_string(count) + "]";
    };
    if (unit_.size() == 1)
        return name_of(unit_[0].type) + times(units());
    std::string text;
    for (const member &one : unit_)
        text += (text.empty() ? "{" : ",") + std::string(name_of(one.type)) + times(one.count);
    return text + "}" + times(units());
}

std::int64_t layout::end(std::uint64_t count) const noexcept
{
    return end_ + static_cast<std::int64_t>(count - 1) * extent_;
}

/** @do_piece(offset in memory, offset in the packed bytes asked for, bytes) for each piece. */
template <typename Piece>
void layout::walk(std::uint64_t first, std::uint64_t bytes, Piece do_piece) const
{
    std::uint64_t at = first % packed_bytes_;
    std::int64_t origin = static_cast<std::int64_t>(first / packed_bytes_) * extent_;
    auto here = std::ranges::upper_bound(pieces_, at, {}, &piece::packed) - 1;
    for (std::uint64_t done = 0; done < bytes;) {
        const std::uint64_t skip = at - here->packed;
        const std::uint64_t some = std::min(here->bytes - skip, bytes - done);
        do_piece(origin + here->offset + static_cast<std::int64_t>(skip), done, some);
        done += some;
        at += some;
        if (skip + some == here->bytes && ++here == pieces_.end()) {
            here = pieces_.begin();
            at = 0;
            origin += extent_;
        }
    }
}

void layout::pack(const std::byte *base, std::uint64_t first, std::span<std::byte> out) const
{
    walk(first, out.size(), [&](std::int64_t from, std::uint64_t to, std::uint64_t bytes) {
        std::memcpy(out.data() + to, base + from, bytes);
    });
}

void layout::unpack(std::byte *base, std::uint64_t first, std::span<const std::byte> in) const
{
    walk(first, in.size(), [&](std::int64_t to, std::uint64_t from, std::uint64_t bytes) {
        std::memcpy(base + to, in.data() + from, bytes);
    });
}

} // namespace zc::migrate
