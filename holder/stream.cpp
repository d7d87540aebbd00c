/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

namespace zc::holder {
namespace {

constexpr std::size_t kHead = 16;
constexpr std::size_t kMostSpares = 4;

nlohmann::json::binary_t as_binary(const std::string &bytes)
{
    return nlohmann::json::binary_t(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
}

std::string from_binary(const nlohmann::json &value)
{
    const auto &bytes = value.get_binary();
    return {bytes.begin(), bytes.end()};
}

} // namespace

std::string encode(const frame &what)
{
    std::string head(kHead, '\0');
    head[0] = static_cast<char>(what.kind);
    head[1] = static_cast<char>(what.stream);
    for (unsigned i = 0; i < 8; i++)
        head[8 + i] = static_cast<char>(what.offset >> (56 - 8 * i));
    return head + what.bytes;
}

std::optional<frame> decode(std::string_view bytes)
{
    if (bytes.size() < kHead)
        return {};
    const auto kind = static_cast<std::uint8_t>(bytes[0]);
    const auto stream = static_cast<std::uint8_t>(bytes[1]);
    if (kind > frame::ACK || stream >= kStreams || (kind != frame::DATA && bytes.size() != kHead))
        return {};
    std::uint64_t offset = 0;
    for (unsigned i = 0; i < 8; i++)
        offset = offset << 8 | static_cast<std::uint8_t>(bytes[8 + i]);
    return frame{static_cast<frame::kind_t>(kind), static_cast<stream_id>(stream), offset,
                 std::string(bytes.substr(kHead))};
}

void outgoing::push(std::string_view bytes)
{
    if (bytes.empty())
        return;
    if (kept_.empty() || kept_.back().size() + bytes.size() > kLongest)
        kept_.emplace_back();
    kept_.back() += bytes;
    size_ += bytes.size();
}

void outgoing::push_all_of(std::string &&bytes)
{
    if (bytes.size() < kLongest / 4)
        return push(bytes);
    size_ += bytes.size();
    kept_.push_back(std::move(bytes));
}

std::string outgoing::take_spare()
{
    if (spares_.empty())
        return {};
    std::string made = std::move(spares_.back());
    spares_.pop_back();
    return made;
}

std::string_view outgoing::unsent() const
{
    std::size_t at = begin_ + (sent_ - base_);
    for (const std::string &part : kept_) { /* some tens of them at most */
        if (at < part.size())
            return std::string_view(part).substr(at, kLongest);
        at -= part.size();
    }
    return {};
}

bool outgoing::resume(std::uint64_t offset)
{
    if (offset < base_ || offset > base_ + kept())
        return false;
    sent_ = offset;
    return true;
}

std::optional<frame> outgoing::next()
{
    if (const std::string_view bytes = unsent(); !bytes.empty()) {
        frame made{frame::DATA, stream_, sent_, std::string(bytes)};
        sent_ += bytes.size();
        return made;
    }
    if (sent_ < end_offset()) {
        frame made{frame::END, stream_, sent_, {}};
        sent_++;
        return made;
    }
    return {};
}

void outgoing::acknowledge(std::uint64_t offset)
{
    /* What is behind all that was ever pushed is not ours; it may be of a holder before. */
    if (offset <= base_ || offset > end_offset())
        return;
    const std::size_t used = offset - base_;
    if (used > kept())
        end_used_ = true;
    begin_ += std::min(used, kept());
    base_ = offset;
    while (!kept_.empty() && begin_ >= kept_.front().size()) {
        begin_ -= kept_.front().size();
        size_ -= kept_.front().size();
        if (kept_.front().size() >= kLongest && spares_.size() < kMostSpares)
            spares_.push_back(std::move(kept_.front()));
        kept_.pop_front();
    }
    sent_ = std::max(sent_, base_);
}

nlohmann::json outgoing::save() const
{
    std::string all;
    for (const std::string &part : kept_)
        all += part;
    return {{"base", base_},
            {"kept", as_binary(all.substr(begin_))},
            {"ended", ended_},
            {"end used", end_used_}};
}

void outgoing::restore(const nlohmann::json &saved)
{
    base_ = sent_ = saved.at("base");
    kept_.assign(1, from_binary(saved.at("kept")));
    size_ = kept_.front().size();
    begin_ = 0;
    ended_ = saved.at("ended");
    end_used_ = saved.at("end used");
}

void incoming::accept(const frame &arrived)
{
    due_ = true;
    if (end_seen_ || arrived.offset > expected())
        return;
    if (arrived.kind == frame::END) {
        end_seen_ = arrived.offset == expected();
        return;
    }
    const std::size_t known = expected() - arrived.offset;
    if (known >= arrived.bytes.size())
        return;
    const std::size_t more = arrived.bytes.size() - known;
    std::memcpy(room(more), arrived.bytes.data() + known, more);
    came(more);
}

char *incoming::room(std::size_t size)
{
    if (capacity_ - begin_ - size_ < size) {
        const std::size_t wanted = std::max(size_ + size, std::min(2 * size_ + size, capacity_));
        std::unique_ptr<char[]> larger;
        if (wanted > capacity_)
            larger = std::make_unique_for_overwrite<char[]>(wanted);
        char *const to = larger ? larger.get() : buffer_.get();
        if (size_ > 0)
            std::memmove(to, buffer_.get() + begin_, size_);
        begin_ = 0;
        if (larger) {
            buffer_ = std::move(larger);
            capacity_ = wanted;
        }
    }
    return buffer_.get() + begin_ + size_;
}

void incoming::use(std::size_t count)
{
    begin_ += count;
    size_ -= count;
    used_ += count;
    if (size_ == 0)
        begin_ = 0;
    due_ = true;
}

void incoming::use_end()
{
    end_used_ = true;
    used_++;
    due_ = true;
}

std::optional<frame> incoming::acknowledgement()
{
    if (!due_)
        return {};
    due_ = false;
    return frame{frame::ACK, stream_, used_, {}};
}

nlohmann::json incoming::save() const
{
    /* What has not been used is sent again: only that which was used counts. */
    return {{"used", used_}, {"end used", end_used_}};
}

void incoming::restore(const nlohmann::json &saved)
{
    used_ = saved.at("used");
    end_used_ = end_seen_ = saved.at("end used");
    begin_ = size_ = 0;
    due_ = true;
}

} // namespace zc::holder
