/* SPDX-License-Identifier: BSD-3-Clause */
#include "loaded_libraries.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <link.h>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <thread>

#include "error.h"
#include "object_identity.h"
#include "preflight.h"
#include "scratch_directory.h"

namespace {

/* Is this thread within the loader, and what did it allocate there? */
[[maybe_unused]] thread_local bool in_loader = false;
thread_local int allocated_in_loader = 0;

} // namespace

/* In place of the C library's, which it calls. The sanitizer of threads has its own ones, and needs
 * them before it can have others called: nothing is counted with it. */
#ifndef __SANITIZE_THREAD__
extern "C" int dl_iterate_phdr(int (*callback)(dl_phdr_info *, std::size_t, void *), void *argument)
{
    static const auto real =
        reinterpret_cast<decltype(&dl_iterate_phdr)>(dlsym(RTLD_NEXT, "dl_iterate_phdr"));
    in_loader = true;
    const int result = real(callback, argument);
    in_loader = false;
    return result;
}

/* Not inlined, or the compiler takes new and free() for no pair. */
[[gnu::noinline]] void *operator new(std::size_t size)
{
    allocated_in_loader += in_loader;
    if (void *const memory = std::malloc(size ? size : 1))
        return memory;
    throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void *memory) noexcept
{
    std::free(memory);
}

[[gnu::noinline]] void operator delete(void *memory, std::size_t) noexcept
{
    std::free(memory);
}
#endif

namespace zc::migrate {
namespace {

namespace fs = std::filesystem;

loaded_libraries list(const std::vector<loaded_library> &all)
{
    loaded_libraries made;
    for (const loaded_library &one : all)
        made.add(one);
    return made;
}

/* The paths of what differs, as "OURS THEIRS". */
std::vector<std::string> differing(const std::vector<loaded_library> &ours,
                                   const std::vector<loaded_library> &theirs)
{
    std::vector<std::string> paths;
    for (const other_library &one : other_libraries(list(ours), list(theirs)))
        paths.push_back(one.ours.path + " " + one.theirs.path);
    return paths;
}

const std::vector<std::string> kNoPaths;

/* A library that this process has opened. */
class opened {
  public:
    explicit opened(const std::string &path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
    {
        EXPECT_TRUE(handle_) << dlerror();
    }
    ~opened()
    {
        if (handle_)
            dlclose(handle_);
    }
    opened(const opened &) = delete;
    opened &operator=(const opened &) = delete;
    /** Within it. */
    const void *address() const { return static_cast<const link_map *>(handle_)->l_ld; }

  private:
    void *handle_;
};

/* Without a path if it is not loaded. */
loaded_library library_here(const std::string &path)
{
    const loaded_libraries here = loaded_libraries::of_this_process();
    for (const loaded_library &one : here.all())
        if (one.path == loaded_library::printable(path))
            return one;
    return {};
}

std::string identity_here(const std::string &path)
{
    return library_here(path).identity;
}

/* Of the first that has a file of this name. */
std::string path_here(const std::string &name)
{
    const loaded_libraries here = loaded_libraries::of_this_process();
    for (const loaded_library &one : here.all())
        if (one.name() == name)
            return one.path;
    return "";
}

std::string contents(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/* Makes a library at @path: SMALL_LIBRARY, with each of its segments as @edit leaves it. */
void edited(const std::string &path, const std::function<void(ElfW(Phdr) &)> &edit)
{
    std::string file = contents(SMALL_LIBRARY);
    ElfW(Ehdr) header;
    ASSERT_GE(file.size(), sizeof header);
    std::memcpy(&header, file.data(), sizeof header);
    for (int i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) part;
        char *const at = file.data() + header.e_phoff + i * sizeof part;
        std::memcpy(&part, at, sizeof part);
        edit(part);
        std::memcpy(at, &part, sizeof part);
    }
    std::ofstream(path, std::ios::binary) << file;
}

/* What a test has of an object that is in memory: @bytes in one segment, and notes or names. */
class made_object {
  public:
    made_object(std::string bytes, std::size_t at, std::size_t size, ElfW(Word) flags = PF_R,
                ElfW(Word) type = PT_NOTE)
        : bytes_(std::move(bytes))
    {
        parts_[0].p_type = type;
        parts_[0].p_vaddr = at;
        parts_[0].p_filesz = parts_[0].p_memsz = size;
        parts_[1].p_type = PT_LOAD;
        parts_[1].p_flags = flags;
        parts_[1].p_filesz = parts_[1].p_memsz = bytes_.size();
        info_.dlpi_addr = reinterpret_cast<ElfW(Addr)>(bytes_.data());
        info_.dlpi_name = "made";
        info_.dlpi_phdr = parts_;
        info_.dlpi_phnum = 2;
    }
    std::string build_id() const { return build_id_of(info_); }
    std::string soname() const { return std::string(soname_of(info_)); }
    ElfW(Addr) address() const { return info_.dlpi_addr; }
    char *bytes() { return bytes_.data(); }

  private:
    std::string bytes_;
    ElfW(Phdr) parts_[2] = {};
    dl_phdr_info info_ = {};
};

/* The soname of an object that has "?m.so" and a zero byte, if @is_ended, behind a dynamic section,
 * which says that there is a table of @size bytes at @table, by its address if @is_address, and the
 * name at @name in it. The section has 64 bytes. */
std::string soname_in(ElfW(Addr) table, bool is_address, std::size_t size, std::size_t name,
                      bool is_ended = true, ElfW(Word) flags = PF_R)
{
    ElfW(Dyn) entries[4] = {};
    made_object object(std::string(sizeof entries, '\0') + "?m.so" +
                           std::string(is_ended ? 1 : 0, '\0'),
                       0, sizeof entries, flags, PT_DYNAMIC);
    entries[0].d_tag = DT_SONAME;
    entries[0].d_un.d_val = name;
    entries[1].d_tag = DT_STRTAB;
    entries[1].d_un.d_ptr = table + (is_address ? object.address() : 0);
    entries[2].d_tag = DT_STRSZ;
    entries[2].d_un.d_val = size;
    std::memcpy(object.bytes(), entries, sizeof entries);
    return object.soname();
}

/* A note with a build-id of three bytes and one of padding. */
std::string build_id_note()
{
    const ElfW(Nhdr) note = {4, 3, NT_GNU_BUILD_ID};
    return std::string(reinterpret_cast<const char *>(&note), sizeof note) +
           std::string("GNU\0\x12\xab\x0f\0", 8);
}

TEST(ObjectIdentity, IsReadWhereASegmentIs)
{
    const std::string note = build_id_note();
    const std::size_t size = note.size();
    EXPECT_EQ(made_object(note, 0, size).build_id(), "12ab0f");
    EXPECT_EQ(made_object(note, 0, size - 1).build_id(), "12ab0f"); /* the last has no padding */
    EXPECT_EQ(made_object("pad " + note, 4, size).build_id(), "12ab0f");
    /* In no segment, behind its end, over its end, or where it is not to be read. */
    EXPECT_EQ(made_object(note, 0x7000000, size).build_id(), "");
    EXPECT_EQ(made_object(note, size, size).build_id(), "");
    EXPECT_EQ(made_object(note, 4, size).build_id(), "");
    EXPECT_EQ(made_object(note, 0, std::size_t(-1)).build_id(), "");
    EXPECT_EQ(made_object(note, std::size_t(-8), size).build_id(), "");
    EXPECT_EQ(made_object(note, 0, size, PF_X).build_id(), "");
    /* A note that says that it is longer than its segment. */
    std::string longer = note;
    longer[4] = '\x40';
    EXPECT_EQ(made_object(longer, 0, size).build_id(), "");
    longer = note;
    longer.replace(0, 4, "\xff\xff\xff\xff");
    EXPECT_EQ(made_object(longer, 0, size).build_id(), "");
}

TEST(ObjectIdentity, IsNotTheNameThatIsOutsideOfSegments)
{
    const ElfW(Addr) at = 4 * sizeof(ElfW(Dyn));
    EXPECT_EQ(soname_in(at, true, 6, 1), "m.so");
    EXPECT_EQ(soname_in(at, false, 6, 1), "m.so");
    EXPECT_EQ(soname_in(at, true, 6, 0), "");
    EXPECT_EQ(soname_in(at, true, 6, 6), "");
    EXPECT_EQ(soname_in(at, true, 6, std::size_t(-1)), "");
    EXPECT_EQ(soname_in(at, true, 7, 1), "");
    EXPECT_EQ(soname_in(at, true, std::size_t(-1), 1), "");
    EXPECT_EQ(soname_in(0x7000000, true, 6, 1), "");
    EXPECT_EQ(soname_in(at, true, 5, 1, false), "");
    EXPECT_EQ(soname_in(at, true, 6, 1, true, PF_X), "");
    const made_object outside("m.so", 0x7000000, 64, PF_R, PT_DYNAMIC);
    EXPECT_EQ(outside.soname(), "");
}

TEST(ObjectIdentity, IsNotReadOutsideOfALibrary)
{
    const scratch_directory place;
    const std::string path = place.path() + "/libpacked.so";
    edited(path, [](ElfW(Phdr) & part) {
        if (part.p_type == PT_NOTE)
            part.p_vaddr = 0x7000000;
    });
    const opened library(path);
    EXPECT_EQ(identity_here(path), checksum_of(path));
}

TEST(ObjectIdentity, IsThatOfTheLibraryAtAnAddress)
{
    const scratch_directory place;
    const std::string path = place.path() + "/libsmall.so";
    EXPECT_EQ(identity_of_program().size(), 40u) << identity_of_program();
    {
        const opened library(SMALL_LIBRARY);
        EXPECT_EQ(identity_of_library(library.address()), identity_here(SMALL_LIBRARY));
        EXPECT_NE(identity_of_library(library.address()), identity_of_program());
    }
    fs::copy_file(SMALL_LIBRARY_PLAIN, path);
    const opened library(path);
    EXPECT_EQ(identity_of_library(library.address()), checksum_of(SMALL_LIBRARY_PLAIN));
    /* Put aside, and another one in its place; then it is nowhere. */
    fs::rename(path, path + ".old");
    fs::copy_file(SMALL_LIBRARY_PLAIN_OTHER, path);
    EXPECT_EQ(identity_of_library(library.address()), checksum_of(SMALL_LIBRARY_PLAIN));
    fs::rename(path, path + ".old");
    EXPECT_TRUE(identity_of_library(library.address()).starts_with("replaced-"))
        << identity_of_library(library.address());
}

TEST(ObjectIdentity, IsNotedWithoutAllocating)
{
    allocated_in_loader = 0;
    const preflight found = preflight::of_this_process();
    EXPECT_EQ(allocated_in_loader, 0);
    EXPECT_EQ(found.program, identity_of_program());
    EXPECT_EQ(allocated_in_loader, 0);
    /* More than there is room for at first. */
    const scratch_directory place;
    std::string path = place.path();
    for (int i = 0; i < 8; i++) {
        path += "/" + std::string(200, 'x');
        fs::create_directory(path);
    }
    path += "/libsmall.so";
    fs::copy_file(SMALL_LIBRARY_PLAIN, path);
    const opened library(path);
    EXPECT_EQ(identity_of_library(library.address()), checksum_of(SMALL_LIBRARY_PLAIN));
    EXPECT_EQ(allocated_in_loader, 0);
}

TEST(ObjectIdentity, OfAReplacedFileIsThatOfNoOther)
{
    EXPECT_TRUE(is_same_build("a", "a"));
    EXPECT_FALSE(is_same_build("a", "b"));
    EXPECT_FALSE(is_same_build(identity_of_replaced(7), identity_of_replaced(7)));
}

TEST(OtherLibraries, AreThoseThatBothHave)
{
    EXPECT_EQ(differing({{"/l/m.so", "a"}, {"/l/c.so", "b"}}, {{"/l/m.so", "a"}, {"/l/c.so", "b"}}),
              kNoPaths);
    EXPECT_EQ(differing({{"/l/m.so", "a"}, {"/l/c.so", "b"}}, {{"/l/c.so", "b"}, {"/l/m.so", "x"}}),
              std::vector<std::string>{"/l/m.so /l/m.so"});
    /* Opened by one of them only. */
    EXPECT_EQ(differing({{"/l/m.so", "a"}}, {{"/l/m.so", "a"}, {"/l/nss.so", "c"}}), kNoPaths);
    EXPECT_EQ(differing({{"/l/m.so", "a"}, {"/l/plugin.so", "c"}}, {{"/l/m.so", "a"}}), kNoPaths);
    EXPECT_EQ(differing({}, {{"/l/m.so", "a"}}), kNoPaths);
    EXPECT_EQ(differing({{"/l/m.so", "a"}}, {}), kNoPaths);
}

TEST(OtherLibraries, AreThoseThatWereReplaced)
{
    /* By chance the files have one number on both hosts. */
    EXPECT_EQ(differing({{"/l/m.so", "replaced-7"}}, {{"/l/m.so", "replaced-7"}}),
              std::vector<std::string>{"/l/m.so /l/m.so"});
}

TEST(OtherLibraries, MayLieElsewhere)
{
    constexpr pairing by_name = pairing::by_name;
    EXPECT_EQ(differing({{"/lib/m.so", "a", by_name}}, {{"/usr/lib/m.so", "a", by_name}}),
              kNoPaths);
    EXPECT_EQ(differing({{"/lib/m.so", "a", by_name}}, {{"/usr/lib/m.so", "x", by_name}}),
              std::vector<std::string>{"/lib/m.so /usr/lib/m.so"});
    EXPECT_EQ(differing({{"m.so", "a", by_name}}, {{"/usr/lib/m.so", "x", by_name}}),
              std::vector<std::string>{"m.so /usr/lib/m.so"});
    /* A plugin of the same name is none of them. */
    EXPECT_EQ(differing({{"/lib/m.so", "a", by_name}, {"/plugins/m.so", "p"}},
                        {{"/usr/lib/m.so", "x", by_name}, {"/others/m.so", "q"}}),
              std::vector<std::string>{"/lib/m.so /usr/lib/m.so"});
    EXPECT_EQ(differing({{"/lib/m.so", "a", by_name}}, {{"/others/m.so", "q"}}), kNoPaths);
    EXPECT_EQ(differing({{"/plugins/m.so", "p"}}, {{"/usr/lib/m.so", "x", by_name}}), kNoPaths);
}

TEST(OtherLibraries, AreNotFilesOfOneNameElsewhere)
{
    EXPECT_EQ(differing({{"/a/plugin.so", "a"}}, {{"/b/plugin.so", "b"}}), kNoPaths);
    EXPECT_EQ(differing({{"/a/plugin.so", "a"}}, {{"/a/plugin.so", "b"}}),
              std::vector<std::string>{"/a/plugin.so /a/plugin.so"});
}

TEST(OtherLibraries, AreNotTheTwinsOfOneName)
{
    const std::vector<loaded_library> twins = {{"/a/p.so", "a"}, {"/b/p.so", "b"}};
    EXPECT_EQ(differing(twins, twins), kNoPaths);
    EXPECT_EQ(differing(twins, {{"/b/p.so", "b"}}), kNoPaths);
    EXPECT_EQ(differing({{"/b/p.so", "b"}}, twins), kNoPaths);
    EXPECT_EQ(differing(twins, {{"/b/p.so", "x"}}), std::vector<std::string>{"/b/p.so /b/p.so"});
    /* Which of them it is cannot be told. */
    constexpr pairing by_name = pairing::by_name;
    const std::vector<loaded_library> named = {{"/a/p.so", "a", by_name},
                                               {"/b/p.so", "b", by_name}};
    EXPECT_EQ(differing(named, {{"/c/p.so", "x", by_name}}), kNoPaths);
    EXPECT_EQ(differing({{"/c/p.so", "x", by_name}}, named), kNoPaths);
    /* One path twice: the file was replaced, and opened again. */
    EXPECT_EQ(differing({{"/a/p.so", "a"}, {"/a/p.so", "b"}}, {{"/a/p.so", "b"}}), kNoPaths);
    EXPECT_EQ(differing({{"/a/p.so", "a"}}, {{"/a/p.so", "a"}, {"/a/p.so", "b"}}), kNoPaths);
}

TEST(OtherLibraries, AreNamed)
{
    const auto ours = list({{"/lib/m.so", "aa11", pairing::by_name}, {"/lib/c.so", "bb22"}});
    EXPECT_EQ(why_other_libraries(ours, ours, "h"), "");
    EXPECT_EQ(why_other_libraries(ours, list({{"/lib/m.so", "cc33"}}), "h"),
              "host h has another build of the library /lib/m.so: found cc33, needed aa11 "
              "(ZC_MIGRATE_OTHER_LIBRARIES)");
    EXPECT_EQ(
        why_other_libraries(
            ours, list({{"/opt/m.so", "cc33", pairing::by_name}, {"/lib/c.so", "dd44"}}), "h"),
        "host h has another build of the library /lib/m.so: found cc33 (/opt/m.so), needed aa11; "
        "and of 1 more (ZC_MIGRATE_OTHER_LIBRARIES)");
}

TEST(LoadedLibraries, AreTold)
{
    const auto some = list({{"/lib/m.so", "bb", pairing::by_name}, {"/lib/c.so", "aa"}});
    EXPECT_EQ(some.to_text(), "aa /lib/c.so\nbb name /lib/m.so\n");
    EXPECT_EQ(loaded_libraries::from_text(some.to_text()).all()[1].paired, pairing::by_name);
    EXPECT_EQ(loaded_libraries::from_text(some.to_text()).to_text(), some.to_text());
    EXPECT_TRUE(loaded_libraries::from_text("").all().empty());
    for (const char *bad : {"aa /lib/c.so", "\n", "aa\n", " /lib/c.so\n", "aa \n", "aa name \n"})
        EXPECT_THROW(loaded_libraries::from_text(bad), error) << bad;
}

TEST(LoadedLibraries, AreThoseOfThisProcess)
{
    const loaded_libraries here = loaded_libraries::of_this_process();
    bool has_libc = false;
    for (const loaded_library &one : here.all()) {
        EXPECT_FALSE(one.path.empty());
        EXPECT_FALSE(one.identity.empty()) << one.path;
        EXPECT_FALSE(one.name().starts_with("linux-vdso")) << one.path;
        has_libc = has_libc || one.name() == "libc.so.6";
    }
    EXPECT_TRUE(has_libc);
    EXPECT_TRUE(other_libraries(here, loaded_libraries::of_this_process()).empty());
}

TEST(LoadedLibraries, ArePairedByTheNameThatTheyGiveThemselves)
{
    const std::string libm = path_here("libm.so.6");
    ASSERT_NE(libm, "");
    EXPECT_EQ(library_here(libm).paired, pairing::by_name);
    const scratch_directory place;
    const std::string path = place.path() + "/libm.so.6", plugin = place.path() + "/plugin.so";
    fs::copy_file(libm, path);
    fs::copy_file(libm, plugin);
    const opened same(path), renamed(plugin);
    EXPECT_EQ(library_here(path).paired, pairing::by_name);
    EXPECT_EQ(library_here(plugin).paired, pairing::by_path);
    const std::string unnamed = place.path() + "/libsmall.so";
    fs::copy_file(SMALL_LIBRARY, unnamed);
    const opened small(unnamed);
    EXPECT_EQ(library_here(unnamed).paired, pairing::by_path);
    EXPECT_NE(library_here(unnamed).identity, "");
}

TEST(LoadedLibraries, HaveTheBuildIdThatIsInMemory)
{
    const scratch_directory place;
    const std::string path = place.path() + "/libsmall.so";
    fs::copy_file(SMALL_LIBRARY, path);
    EXPECT_EQ(identity_here(path), "");
    const opened library(path);
    const std::string identity = identity_here(path);
    EXPECT_EQ(identity.size(), 40u) << identity;
    /* An upgrade meanwhile: the process has what it had. */
    fs::copy_file(SMALL_LIBRARY_OTHER, path + ".new");
    fs::rename(path + ".new", path);
    EXPECT_EQ(identity_here(path), identity);
    fs::remove(path);
    EXPECT_EQ(identity_here(path), identity);
}

TEST(LoadedLibraries, HaveAChecksumWithoutBuildId)
{
    const scratch_directory place;
    const std::string path = place.path() + "/libsmall.so", late = place.path() + "/liblate.so";
    fs::copy_file(SMALL_LIBRARY_PLAIN, path);
    fs::copy_file(SMALL_LIBRARY_PLAIN, late);
    std::string identity;
    {
        const opened library(path);
        identity = identity_here(path);
        EXPECT_EQ(identity, checksum_of(SMALL_LIBRARY_PLAIN));
        EXPECT_TRUE(identity.starts_with("crc32c-")) << identity;
        EXPECT_TRUE(identity.ends_with("-" + std::to_string(fs::file_size(path)))) << identity;
        EXPECT_NE(identity, checksum_of(SMALL_LIBRARY_PLAIN_OTHER));
        fs::copy_file(SMALL_LIBRARY_PLAIN_OTHER, path + ".new");
        fs::rename(path + ".new", path);
        EXPECT_EQ(identity_here(path), identity); /* as noted before */
    }
    {
        const opened library(path); /* at the same address, for all that is known */
        EXPECT_EQ(identity_here(path), checksum_of(SMALL_LIBRARY_PLAIN_OTHER));
    }
    const opened library(late);
    fs::remove(late);
    EXPECT_TRUE(identity_here(late).starts_with("replaced-")) << identity_here(late);
    EXPECT_EQ(checksum_of(late), "");
}

TEST(LoadedLibraries, HaveTheChecksumOfTheirOwnFile)
{
    const scratch_directory place;
    const std::string path = place.path() + "/libsmall.so";
    fs::copy_file(SMALL_LIBRARY_PLAIN, path);
    {
        /* Put aside before it is looked at, and another one in its place. */
        const opened library(path);
        fs::rename(path, path + ".old");
        fs::copy_file(SMALL_LIBRARY_PLAIN_OTHER, path);
        EXPECT_EQ(identity_here(path), checksum_of(SMALL_LIBRARY_PLAIN));
    }
    {
        /* Replaced before it is looked at. */
        const opened library(path);
        fs::rename(path + ".old", path);
        EXPECT_TRUE(identity_here(path).starts_with("replaced-")) << identity_here(path);
    }
    /* Opened by a path that leads to another file by now. */
    const fs::path before = fs::current_path();
    fs::create_directory(place.path() + "/a");
    fs::create_directory(place.path() + "/b");
    fs::copy_file(SMALL_LIBRARY_PLAIN, place.path() + "/a/librelative.so");
    fs::copy_file(SMALL_LIBRARY_PLAIN_OTHER, place.path() + "/b/librelative.so");
    fs::current_path(place.path() + "/a");
    const opened library("./librelative.so");
    fs::current_path(place.path() + "/b");
    EXPECT_EQ(identity_here("./librelative.so"), checksum_of(SMALL_LIBRARY_PLAIN));
    fs::remove(place.path() + "/a/librelative.so");
    fs::current_path(before);
}

TEST(LoadedLibraries, AreReadOnce)
{
    const scratch_directory place;
    const std::string path = place.path() + "/libsmall.so", other = place.path() + "/libother.so";
    fs::copy_file(SMALL_LIBRARY_PLAIN, path);
    fs::copy_file(SMALL_LIBRARY, other);
    const opened library(path);
    const std::string identity = identity_here(path);
    EXPECT_EQ(identity, checksum_of(SMALL_LIBRARY_PLAIN));
    fs::copy_file(SMALL_LIBRARY_PLAIN_OTHER, path + ".new");
    fs::rename(path + ".new", path);
    /* That another one comes and goes is nothing to it. */
    for (int i = 0; i < 2; i++) {
        {
            const opened passing(other);
        }
        EXPECT_EQ(identity_here(path), identity);
    }
}

TEST(LoadedLibraries, AreReadAgainWhenTheyAreOthers)
{
    const scratch_directory place;
    const std::string path = place.path() + "/libsmall.so";
    fs::copy_file(SMALL_LIBRARY_PLAIN, path);
    {
        const opened library(path);
        EXPECT_EQ(identity_here(path), checksum_of(SMALL_LIBRARY_PLAIN));
    }
    /* The same file, and maybe the same address. The clock of files is a coarse one. */
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::ofstream(path, std::ios::binary) << contents(SMALL_LIBRARY_PLAIN_OTHER);
    const opened library(path);
    EXPECT_EQ(identity_here(path), checksum_of(SMALL_LIBRARY_PLAIN_OTHER));
}

TEST(LoadedLibraries, AreNotedWithoutAllocating)
{
    loaded_libraries::of_this_process();
    allocated_in_loader = 0;
    loaded_libraries::of_this_process();
    EXPECT_EQ(allocated_in_loader, 0);
    /* More than there is room for at first. */
    const scratch_directory place;
    std::vector<std::string> paths;
    std::vector<std::unique_ptr<opened>> many;
    for (int i = 0; i < 150; i++) {
        paths.push_back(place.path() + "/libsmall" + std::string(150, 'x') + std::to_string(i));
        fs::copy_file(i % 2 ? SMALL_LIBRARY : SMALL_LIBRARY_OTHER, paths.back());
        many.push_back(std::make_unique<opened>(paths.back()));
    }
    allocated_in_loader = 0;
    const loaded_libraries here = loaded_libraries::of_this_process();
    EXPECT_EQ(allocated_in_loader, 0);
    const std::string ids[] = {identity_here(paths[0]), identity_here(paths[1])};
    EXPECT_NE(ids[0], ids[1]);
    std::size_t seen = 0;
    for (const loaded_library &one : here.all())
        if (seen < paths.size() && one.path == paths[seen]) {
            EXPECT_EQ(one.identity, ids[seen % 2]) << one.path;
            seen++;
        }
    EXPECT_EQ(seen, paths.size());
}

TEST(LoadedLibraries, MayHaveAnyName)
{
    EXPECT_EQ(loaded_library::printable("/a b/\xff%\n.so"), "/a%20b/%FF%25%0A.so");
    const scratch_directory place;
    const std::string path = place.path() + "/lib\xff\xfe small.so";
    fs::copy_file(SMALL_LIBRARY, path);
    const opened library(path);
    preflight told;
    told.libraries = loaded_libraries::of_this_process();
    const preflight heard = preflight::find_in(told.to_line());
    EXPECT_EQ(heard.libraries.to_text(), told.libraries.to_text());
    EXPECT_NE(heard.libraries.to_text().find("/lib%FF%FE%20small.so\n"), std::string::npos);
    const std::string why = why_other_libraries(
        heard.libraries, list({{loaded_library::printable(path), "another"}}), "h");
    EXPECT_NE(why.find("/lib%FF%FE%20small.so: found another, needed "), std::string::npos) << why;
    EXPECT_NO_THROW(nlohmann::json(why).dump());
}

TEST(LoadedLibraries, OfOneNameAreToldApart)
{
    const scratch_directory place;
    fs::create_directory(place.path() + "/a");
    fs::create_directory(place.path() + "/b");
    const std::string a = place.path() + "/a/plugin.so", b = place.path() + "/b/plugin.so";
    fs::copy_file(SMALL_LIBRARY, a);
    fs::copy_file(SMALL_LIBRARY_OTHER, b);
    const opened first(a), second(b);
    EXPECT_NE(identity_here(a), "");
    EXPECT_NE(identity_here(b), "");
    EXPECT_NE(identity_here(a), identity_here(b));
}

} // namespace
} // namespace zc::migrate
