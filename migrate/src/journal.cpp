/* SPDX-License-Identifier: BSD-3-Clause */
#include "journal.h"

#include <cerrno>
#include <cstring>
#include <string_view>

#include "error.h"

namespace zc::migrate {

void journal::writer::put(const void *from, std::size_t length)
{
    const auto *bytes = static_cast<const std::byte *>(from);
    bytes_.insert(bytes_.end(), bytes, bytes + length);
}

std::span<const std::byte> journal::reader::get_span(std::size_t length)
{
    if (length > bytes_.size())
        throw error(EBADMSG, "the record of the initialisation is damaged");
    const auto found = bytes_.first(length);
    bytes_ = bytes_.subspan(length);
    return found;
}

void journal::reader::get(void *to, std::size_t length)
{
    const auto from = get_span(length);
    if (length > 0)
        std::memcpy(to, from.data(), length);
}

bool journal::note(const char *name, arguments with, int code, std::span<const std::byte> returned)
{
    const std::size_t length = std::strlen(name);
    const std::size_t needed = 3 * sizeof(std::uint32_t) + sizeof(std::uint64_t) + length +
                               with.size() * sizeof(std::int64_t) + returned.size();
    if (full_ || needed > most_ - bytes_.size()) {
        full_ = true;
        bytes_ = {};
        return false;
    }
    writer out(bytes_);
    out.put(static_cast<std::uint32_t>(length));
    out.put(name, length);
    out.put(static_cast<std::uint32_t>(with.size()));
    for (std::int64_t each : with)
        out.put(each);
    out.put(static_cast<std::int32_t>(code));
    out.put(static_cast<std::uint64_t>(returned.size()));
    out.put(returned.data(), returned.size());
    calls_++;
    return true;
}

bool journal::skip_local(const char *name)
{
    while (!is_at_end()) {
        reader in(std::span<const std::byte>(bytes_).subspan(at_));
        const std::size_t before = in.left();
        const auto letters = in.get_span(in.get<std::uint32_t>());
        const std::string_view recorded(reinterpret_cast<const char *>(letters.data()),
                                        letters.size());
        if (recorded == name || !recorded.starts_with(kLocal))
            return recorded == name;
        in.get_span(in.get<std::uint32_t>() * sizeof(std::int64_t));
        in.get<std::int32_t>();
        in.get_span(in.get<std::uint64_t>());
        at_ += before - in.left();
    }
    return false;
}

journal::answer journal::next(const char *name, arguments with)
{
    const std::string which =
        "call " + std::to_string(calls_ + 1) + " of its initialisation is " + name;
    skip_local(name);
    if (is_at_end())
        throw error(EBADMSG, which + "(), and the predecessor's had ended by then");
    reader in(std::span<const std::byte>(bytes_).subspan(at_));
    const std::size_t before = in.left();
    const auto letters = in.get_span(in.get<std::uint32_t>());
    const std::string recorded(reinterpret_cast<const char *>(letters.data()), letters.size());
    if (recorded != name)
        throw error(EBADMSG, which + "(), and the predecessor's was " + recorded + "()");
    const auto count = in.get<std::uint32_t>();
    if (count != with.size())
        throw error(EBADMSG, which + "(), with other arguments than the predecessor's");
    int place = 0;
    for (std::int64_t mine : with) {
        place++;
        if (const auto theirs = in.get<std::int64_t>(); theirs != mine)
            throw error(EBADMSG, which + "(), and number " + std::to_string(place) +
                                     " of what is compared was " + std::to_string(theirs) +
                                     " in the predecessor and is " + std::to_string(mine));
    }
    const int code = in.get<std::int32_t>();
    const auto returned = in.get_span(in.get<std::uint64_t>());
    at_ += before - in.left();
    calls_++;
    return {code, reader(returned)};
}

} // namespace zc::migrate
