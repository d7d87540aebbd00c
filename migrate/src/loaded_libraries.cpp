/* SPDX-License-Identifier: BSD-3-Clause */
#include "loaded_libraries.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <tuple>
#include <utility>

#include "error.h"
#include "mapped_file.h"
#include "object_identity.h"

namespace zc::migrate {

namespace {

std::string_view name_of(std::string_view path)
{
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

constexpr std::string_view kByName = "name ";

/** An object as the loader has it. */
struct found_object {
    std::string path, build_id;
    pairing paired = pairing::by_path;
    std::uintptr_t begin = 0, end = 0; /* of all its segments */
};

/**
 * The objects, as noted while the loader holds its locks. Nothing is allocated then: an allocator
 * may wait for another thread that waits for the loader. So there is room before; what does not fit
 * is counted only, and then it is all done again with more room. The names are copied at once, as
 * another thread may close a library as soon as the loader goes on.
 */
class object_notes {
  public:
    static object_notes of_this_process()
    {
        object_notes notes(64, 16 << 10);
        while (dl_iterate_phdr(note, &notes), !notes.is_complete())
            notes = object_notes(2 * notes.count_, 2 * notes.bytes_);
        return notes;
    }

    std::vector<found_object> all() const
    {
        std::vector<found_object> found;
        const char *text = text_.data();
        for (std::size_t i = 0; i < count_; i++) {
            const noted &one = objects_[i];
            const std::span id(reinterpret_cast<const unsigned char *>(text) + one.path_size,
                               one.id_size);
            found.push_back({std::string(text, one.path_size), hexadecimal(id), one.paired,
                             one.begin, one.end});
            text += one.path_size + one.id_size;
        }
        return found;
    }
    /** How many libraries have been unloaded so far. */
    unsigned long long unloaded() const noexcept { return unloaded_; }

  private:
    struct noted {
        std::size_t path_size, id_size; /* in text_, one behind the other */
        pairing paired;
        std::uintptr_t begin, end;
    };

    object_notes(std::size_t objects, std::size_t bytes) : objects_(objects), text_(bytes) {}

    bool is_complete() const noexcept
    {
        return count_ <= objects_.size() && bytes_ <= text_.size();
    }

    static int note(dl_phdr_info *object, std::size_t, void *argument) noexcept
    {
        static_cast<object_notes *>(argument)->add(*object);
        return 0;
    }

    void add(const dl_phdr_info &object) noexcept
    {
        unloaded_ = object.dlpi_subs;
        if (!object.dlpi_name || !*object.dlpi_name) /* the program */
            return;
        const std::uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
        std::uintptr_t begin = UINTPTR_MAX, end = 0;
        for (int i = 0; i < object.dlpi_phnum; i++) {
            const ElfW(Phdr) &part = object.dlpi_phdr[i];
            if (part.p_type != PT_LOAD)
                continue;
            const std::uintptr_t at = object.dlpi_addr + part.p_vaddr;
            begin = std::min(begin, at);
            end = std::max(end, at + part.p_memsz);
        }
        if (begin >= end || (vdso >= begin && vdso < end))
            return;
        const std::string_view path = object.dlpi_name;
        const auto id = build_id_bytes(object);
        const std::size_t at = bytes_, which = count_++;
        bytes_ += path.size() + id.size();
        if (!is_complete())
            return;
        const pairing paired =
            name_of(path) == soname_of(object) ? pairing::by_name : pairing::by_path;
        objects_[which] = {path.size(), id.size(), paired, begin, end};
        std::ranges::copy(path, text_.begin() + static_cast<std::ptrdiff_t>(at));
        std::ranges::copy(id, text_.begin() + static_cast<std::ptrdiff_t>(at + path.size()));
    }

    std::vector<noted> objects_;
    std::vector<char> text_;
    std::size_t count_ = 0, bytes_ = 0; /* more than there is room for: not complete */
    unsigned long long unloaded_ = 0;
};

/**
 * Checksums of the libraries without a build-id that were loaded at the last look. A library may be
 * large, and its file may be replaced: it is read once, and soon. What is known of a library is
 * kept until it is unloaded, whatever other ones are and whatever becomes of its file.
 */
class known_checksums {
  public:
    /** Of libraries of which @unloaded have been unloaded so far. */
    explicit known_checksums(unsigned long long unloaded) : unloaded_(unloaded) {}

    /** Of @object; what @before knew of it is kept here. */
    std::string identity(const found_object &object, const mapped_file &mapped,
                         const known_checksums &before)
    {
        const key at = {mapped.device, mapped.inode, object.begin};
        const auto known = before.all_.find(at);
        const bool is_known = known != before.all_.end();
        if (is_known && unloaded_ == before.unloaded_)
            return (all_[at] = known->second).text;
        /* This one may have been unloaded, its file written anew or its number given to a new file,
         * and that loaded at the same address: it has another time of change. */
        const open_file_of file(object.path, mapped);
        if (is_known && !(file && file.has_changed_since(known->second.facts)))
            return (all_[at] = known->second).text;
        std::string text = file ? file.checksum() : "";
        if (text.empty())
            return identity_of_replaced(mapped.inode);
        all_[at] = {text, file.facts()};
        return text;
    }

  private:
    using key = std::tuple<dev_t, std::uint64_t, std::uintptr_t>;
    struct known_file {
        std::string text;
        struct stat facts;
    };

    std::map<key, known_file> all_;
    unsigned long long unloaded_;
};

/** Which of @all has a path, or a name; nullptr: several have. */
using found_by = std::map<std::string_view, const loaded_library *>;

found_by index(const loaded_libraries &all, pairing key)
{
    found_by found;
    for (const loaded_library &one : all.all()) {
        if (key == pairing::by_name && one.paired != pairing::by_name)
            continue;
        const std::string_view text = key == pairing::by_path ? one.path : one.name();
        if (const auto [at, is_first] = found.emplace(text, &one); !is_first)
            at->second = nullptr;
    }
    return found;
}

const loaded_library *only(const found_by &all, std::string_view key)
{
    const auto at = all.find(key);
    return at == all.end() ? nullptr : at->second;
}

} // namespace

std::string_view loaded_library::name() const
{
    return name_of(path);
}

std::string loaded_library::printable(std::string_view path)
{
    constexpr char digits[] = "0123456789ABCDEF";
    std::string text;
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > ' ' && byte < 0x7f && c != '%')
            text += c;
        else
            text.append({'%', digits[byte >> 4], digits[byte & 15]});
    }
    return text;
}

loaded_libraries loaded_libraries::of_this_process()
{
    static std::mutex guard;
    static known_checksums before(0);
    const std::lock_guard lock(guard); /* also of the look: the last one knows what is loaded */
    const object_notes notes = object_notes::of_this_process();
    const std::vector<found_object> found = notes.all();
    const bool has_id = std::ranges::none_of(found, &std::string::empty, &found_object::build_id);
    const std::vector<mapped_file> files = has_id ? std::vector<mapped_file>() : mapped_files();
    known_checksums known(notes.unloaded());
    loaded_libraries all;
    for (const found_object &one : found)
        all.add({loaded_library::printable(one.path),
                 one.build_id.empty()
                     ? known.identity(one, first_within(files, one.begin, one.end), before)
                     : one.build_id,
                 one.paired});
    before = std::move(known);
    return all;
}

void loaded_libraries::add(loaded_library one)
{
    all_.push_back(std::move(one));
}

std::string loaded_libraries::to_text() const
{
    std::vector<std::string> lines;
    for (const loaded_library &one : all_)
        lines.push_back(one.identity + " " +
                        std::string(one.paired == pairing::by_name ? kByName : "") + one.path +
                        "\n");
    std::ranges::sort(lines);
    std::string text;
    for (const std::string &line : lines)
        text += line;
    return text;
}

loaded_libraries loaded_libraries::from_text(std::string_view text)
{
    loaded_libraries all;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        const std::size_t blank = std::min(line.find(' '), line.size());
        std::string_view path = line.substr(std::min(blank + 1, line.size()));
        const bool by_name = path.starts_with(kByName);
        path.remove_prefix(by_name ? kByName.size() : 0);
        if (line.size() == text.size() || blank == 0 || path.empty())
            throw error(EBADMSG, "no library in '" + std::string(line) + "'");
        all.add({std::string(path), std::string(line.substr(0, blank)),
                 by_name ? pairing::by_name : pairing::by_path});
        text.remove_prefix(line.size() + 1);
    }
    return all;
}

std::vector<other_library> other_libraries(const loaded_libraries &ours,
                                           const loaded_libraries &theirs)
{
    const found_by our_paths = index(ours, pairing::by_path);
    const found_by our_names = index(ours, pairing::by_name);
    const found_by their_paths = index(theirs, pairing::by_path);
    const found_by their_names = index(theirs, pairing::by_name);
    std::vector<other_library> found;
    for (const loaded_library &one : ours.all()) {
        const loaded_library *other = nullptr;
        if (their_paths.contains(one.path))
            other = only(our_paths, one.path) ? only(their_paths, one.path) : nullptr;
        else if (only(our_names, one.name()) == &one)
            other = only(their_names, one.name());
        if (other && !is_same_build(one.identity, other->identity))
            found.push_back({one, *other});
    }
    return found;
}

std::string why_other_libraries(const loaded_libraries &ours, const loaded_libraries &theirs,
                                const std::string &host)
{
    const std::vector<other_library> found = other_libraries(ours, theirs);
    if (found.empty())
        return "";
    const auto &[needed, there] = found.front();
    std::string text = "host " + host + " has another build of the library " + needed.path +
                       ": found " + there.identity;
    if (there.path != needed.path)
        text += " (" + there.path + ")";
    text += ", needed " + needed.identity;
    if (found.size() > 1)
        text += "; and of " + std::to_string(found.size() - 1) + " more";
    return text + " (ZC_MIGRATE_OTHER_LIBRARIES)";
}

} // namespace zc::migrate
