/* SPDX-License-Identifier: BSD-3-Clause */
#include "pagemap.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "error.h"

namespace zc::holder {
namespace {

/*
 * CRIU's images: two numbers that say what follows, then messages of Protocol Buffers, a length of
 * 32 bits before each. Here the first is the head, and each other stands for pages:
 * https://criu.org/Images, images/pagemap.proto of its source.
 */
constexpr std::uint32_t kImage = 0x54564319, kPagemap = 0x56084025;
constexpr std::uint64_t kPage = 4096;
enum field : std::uint64_t { kAddress = 1, kPages = 2, kFlags = 4, kManyPages = 5 };
constexpr std::uint64_t kLazy = 1 << 1, kPresent = 1 << 2; /* of kFlags */
constexpr unsigned kVarint = 0;                            /* the one kind that fields have here */

class reader {
  public:
    explicit reader(std::string_view bytes) : bytes_(bytes) {}
    bool is_at_end() const { return bytes_.empty(); }
    std::string_view take(std::size_t count)
    {
        if (count > bytes_.size())
            throw error(EBADMSG, "CRIU's pagemap ends too early");
        const std::string_view taken = bytes_.substr(0, count);
        bytes_.remove_prefix(count);
        return taken;
    }
    std::uint32_t number()
    {
        std::uint32_t value;
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }
    std::uint64_t varint()
    {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(take(1)[0]);
            value |= std::uint64_t{byte & 0x7fU} << shift;
            if (byte < 0x80)
                return value;
        }
        throw error(EBADMSG, "CRIU's pagemap has a number that is too long");
    }

  private:
    std::string_view bytes_;
};

struct entry {
    std::uint64_t address = 0, pages = 0, flags = 0;
};

entry entry_of(std::string_view bytes)
{
    entry found;
    for (reader message(bytes); !message.is_at_end();) {
        const std::uint64_t key = message.varint();
        if ((key & 7) != kVarint)
            throw error(EBADMSG, "CRIU's pagemap has a field of another kind");
        const std::uint64_t value = message.varint();
        switch (key >> 3) {
        case kAddress:
            found.address = value;
            break;
        case kPages: /* for those that do not have the next one */
            found.pages = std::max(found.pages, value);
            break;
        case kManyPages:
            found.pages = value;
            break;
        case kFlags:
            found.flags = value;
            break;
        default:
            break;
        }
    }
    return found;
}

} // namespace

std::vector<page_range> left_out(const std::string &directory, pid_t pid)
{
    const std::string path = directory + "/pagemap-" + std::to_string(pid) + ".img";
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (!file)
        throw error(ENOENT, path);
    reader image(bytes);
    if (image.number() != kImage || image.number() != kPagemap)
        throw error(EBADMSG, path + " is no pagemap");
    image.take(image.number()); /* the head */
    std::vector<page_range> found;
    while (!image.is_at_end()) {
        const entry one = entry_of(image.take(image.number()));
        if (!(one.flags & kLazy) || one.flags & kPresent || one.pages == 0)
            continue;
        append(found, {one.address, one.address + one.pages * kPage});
    }
    return found;
}

} // namespace zc::holder
