/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers.h"

#include "support.h"
#include "vma.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

using namespace zc;
using namespace zc::test;

namespace {

/** A folder for device files, and a machine that has what the test says. */
class DriversTest : public fixture {
  protected:
    DriversTest()
    {
        folder_ = testing::TempDir() + "zc_drivers_" + std::to_string(getpid());
        std::filesystem::create_directories(folder_ + "/vfio");
        std::filesystem::create_directories(folder_ + "/driver");
        misc_ = folder_ + "/misc";
        nvidia_ = folder_ + "/driver/nvidia";
        taint_ = folder_ + "/tainted";
        machine_has(" 229 fuse\n 196 vfio\n");
        kernel_has_seen(0);
        kernel.misc_drivers = misc_.c_str();
        kernel.nvidia_driver = nvidia_.c_str();
        kernel.taint = taint_.c_str();
    }
    ~DriversTest() override
    {
        for (int fd : open_)
            close(fd);
        std::filesystem::remove_all(folder_);
    }

    void machine_has(const char *misc) { std::ofstream(misc_) << misc; }

    /** @taint: kOutside and others. */
    void kernel_has_seen(unsigned taint) { std::ofstream(taint_) << taint << '\n'; }

    /** Opens a device that does nothing under this @name; false if we may not make one. */
    bool open_device(const char *name, dev_t number = makedev(1, 3), int flags = O_RDONLY)
    {
        std::string path = folder_ + "/" + name;
        if (mknod(path.c_str(), S_IFCHR | 0600, number) != 0)
            return false;
        int fd = open(path.c_str(), flags | O_CLOEXEC);
        if (fd >= 0)
            open_.push_back(fd);
        return fd >= 0;
    }

    std::string folder_, misc_, nvidia_, taint_;
    std::vector<int> open_;
};

constexpr unsigned kWarned = 1u << 9, kOutside = 1u << 12;

constexpr const char *kMayNot = "may not make device files here";

} // namespace

TEST(HoldTest, IsKnownByNameOrNumber)
{
    for (const char *path :
         {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap1",
          "/dev/vfio/vfio", "/dev/vfio/12", "/dev/vfio/devices/vfio0", "/host/dev/nvidia3"})
        EXPECT_EQ(hold_of_file(path, makedev(500, 0)), hold::pin) << path;
    EXPECT_EQ(hold_of_file("/dev/knem", makedev(10, 58)), hold::reference);
    EXPECT_EQ(hold_of_file("/anything", makedev(195, 255)), hold::pin);
    EXPECT_EQ(hold_of_file("/anything", makedev(10, 196)), hold::pin);
    for (const char *path :
         {"/dev/null", "/dev/dri/renderD128", "/dev/kfd", "/dev/kvm", "/dev/xpmem",
          "/dev/infiniband/uverbs0", "/dev/pts/0", "/dev/zc", "", "knemo"})
        EXPECT_EQ(hold_of_file(path, makedev(10, 232)), hold::none) << path;
}

TEST(HoldTest, IsKnownByMapping)
{
    EXPECT_EQ(hold_of_mapping("/usr/lib/x86_64-linux-gnu/libcuda.so.535.104.05"), hold::pin);
    EXPECT_EQ(hold_of_mapping("/dev/nvidia0"), hold::pin);
    EXPECT_EQ(hold_of_mapping("/dev/knem"), hold::reference);
    for (const char *name : {"/usr/lib/libcudart.so.12", "/home/me/nvidia.txt", "/dev/zero", ""})
        EXPECT_EQ(hold_of_mapping(name), hold::none) << name;
}

TEST_F(DriversTest, ADeviceThatIsOpenedIsSeenFromThenOn)
{
    drivers d;
    EXPECT_EQ(d.ask(), hold::none);
    if (!open_device("nvidia0"))
        GTEST_SKIP() << kMayNot;
    EXPECT_EQ(d.ask(), hold::pin);
    EXPECT_NE(std::string(d.culprit().data()).find("/nvidia0"), std::string::npos);
    close(open_.back());
    open_.pop_back();
    EXPECT_EQ(d.ask(), hold::pin) << "what it holds may outlive its descriptor";
}

TEST_F(DriversTest, ADeviceInThePlaceOfAnother)
{
    if (!open_device("harmless"))
        GTEST_SKIP() << kMayNot;
    drivers d;
    EXPECT_EQ(d.ask(), hold::none);
    int place = open_.back();
    close(place);
    ASSERT_TRUE(open_device("vfio/1"));
    EXPECT_EQ(open_.back(), place) << "neither the number of files nor the highest has changed";
    open_.erase(open_.begin());
    EXPECT_EQ(d.ask(), hold::pin);
}

TEST_F(DriversTest, NvidiasNumberSuffices)
{
    drivers d;
    EXPECT_EQ(d.ask(), hold::none);
    /* Without its driver it can be opened as a place only. */
    if (!open_device("gpu", makedev(195, 0), O_PATH))
        GTEST_SKIP() << kMayNot;
    EXPECT_EQ(d.ask(), hold::pin);
}

TEST_F(DriversTest, IsLookedForOnlyWhereThereIsADriver)
{
    machine_has(" 229 fuse\n  58 knemo\n");
    drivers d;
    EXPECT_FALSE(d.present());
    EXPECT_EQ(d.ask(), hold::none);
    if (!open_device("nvidia0"))
        GTEST_SKIP() << kMayNot;
    EXPECT_EQ(d.ask(), hold::none);
    std::filesystem::create_directory(nvidia_);
    kernel_has_seen(kOutside);
    EXPECT_TRUE(d.present()) << "loaded meanwhile";
    EXPECT_EQ(d.ask(), hold::pin);
}

TEST_F(DriversTest, OthersMayHaveFoldersBesideNvidias)
{
    machine_has(" 229 fuse\n");
    drivers d;
    EXPECT_FALSE(d.present());
    std::filesystem::create_directory(folder_ + "/driver/rtc");
    EXPECT_FALSE(d.present());
    std::filesystem::create_directory(nvidia_);
    EXPECT_TRUE(d.present());
    std::filesystem::remove(folder_ + "/driver/rtc");
    EXPECT_TRUE(d.present());
}

TEST_F(DriversTest, AFolderThatCannotBeOpenedIsLookedForByItsPath)
{
    machine_has(" 229 fuse\n");
    std::filesystem::remove(folder_ + "/driver");
    drivers d;
    EXPECT_FALSE(d.present());
    std::filesystem::create_directories(nvidia_);
    EXPECT_TRUE(d.present());
}

/* Neither NVIDIA's driver nor KNEM can be loaded without this mark. */
TEST_F(DriversTest, ALoadedModuleFromOutsideIsNoticedAndNotForgotten)
{
    machine_has(" 229 fuse\n");
    drivers d;
    if (!open_device("knem"))
        GTEST_SKIP() << kMayNot;
    kernel_has_seen(kWarned);
    EXPECT_EQ(d.ask(), hold::reference) << "the first question looks in any case";

    drivers late;
    close(open_.back());
    open_.pop_back();
    EXPECT_EQ(late.ask(), hold::none);
    ASSERT_TRUE(open_device("knem2"));
    ASSERT_TRUE(open_device("vfio/2"));
    EXPECT_EQ(late.ask(), hold::none) << "other marks do not matter";
    kernel_has_seen(kWarned | kOutside);
    EXPECT_EQ(late.ask(), hold::none) << "nor does a module that is another's";
    kernel_has_seen(0);
    machine_has(" 229 fuse\n  58 knem\n");
    EXPECT_EQ(late.ask(), hold::pin);
}

TEST_F(DriversTest, OneThatWasThereBeforeNeedsNoMark)
{
    machine_has("  58 knem\n");
    drivers d;
    EXPECT_EQ(d.ask(), hold::none);
    if (!open_device("knem"))
        GTEST_SKIP() << kMayNot;
    EXPECT_EQ(d.ask(), hold::reference);
}

TEST_F(DriversTest, AMarkThatCannotBeReadMayBeSet)
{
    machine_has(" 229 fuse\n");
    std::filesystem::remove(taint_);
    drivers d;
    EXPECT_EQ(d.ask(), hold::none);
    if (!open_device("knem"))
        GTEST_SKIP() << kMayNot;
    machine_has("  58 knem\n");
    EXPECT_EQ(d.ask(), hold::reference);
}

/* What VFIO holds is counted as locked. */
TEST_F(DriversTest, VfioMattersWhereMemoryIsLocked)
{
    drivers d;
    EXPECT_EQ(d.ask(), hold::none);
    if (!open_device("vfio/vfio"))
        GTEST_SKIP() << kMayNot;
    EXPECT_EQ(d.ask(false), hold::none);
    kernel_has_seen(kOutside);
    EXPECT_EQ(d.ask(false), hold::none);
    EXPECT_EQ(d.ask(true), hold::pin);
    EXPECT_EQ(d.ask(false), hold::pin) << "found is found";
}

TEST_F(DriversTest, AListThatCannotBeReadMayNameOne)
{
    std::string missing = folder_ + "/none";
    kernel.misc_drivers = missing.c_str();
    drivers d;
    EXPECT_TRUE(d.present());
}

TEST_F(DriversTest, WhatCannotBeSeenMayBeHeld)
{
    drivers d;
    EXPECT_EQ(d.ask(), hold::none);
    rlimit before{}, none{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = {0, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    hold blind = d.ask();
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(blind, hold::pin);
    EXPECT_EQ(d.ask(), hold::none) << "it could be seen again";
}

TEST_F(DriversTest, ALibraryIsSeenWhenItIsLoaded)
{
    machine_has(" 229 fuse\n");
    drivers d;
    EXPECT_EQ(d.ask_cheaply(), hold::none);
    std::string library = folder_ + "/libcuda.so.1";
    std::filesystem::copy_file(ZC_TEST_LIBRARY, library);
    void *loaded = dlopen(library.c_str(), RTLD_NOW);
    ASSERT_NE(loaded, nullptr) << dlerror();
    EXPECT_EQ(d.ask_cheaply(), hold::pin);
    EXPECT_EQ(d.ask(), hold::pin);
    dlclose(loaded);
}

/* UCX loads what opens the device: no question to the system is needed to notice. */
TEST_F(DriversTest, WhatALibraryOpensIsSeenCheaply)
{
    drivers d;
    EXPECT_EQ(d.ask_cheaply(), hold::none);
    if (!open_device("knem"))
        GTEST_SKIP() << kMayNot;
    EXPECT_EQ(d.ask_cheaply(), hold::none);
    std::string library = folder_ + "/libuct_knem.so";
    std::filesystem::copy_file(ZC_TEST_LIBRARY, library);
    void *loaded = dlopen(library.c_str(), RTLD_NOW);
    ASSERT_NE(loaded, nullptr) << dlerror();
    EXPECT_EQ(d.ask_cheaply(), hold::reference);
    dlclose(loaded);
}

TEST_F(DriversTest, DeliveriesAreCopiedFromThenOn)
{
    std::vector<std::string> lines;
    params_.log = [](void *arg, const char *line) {
        static_cast<std::vector<std::string> *>(arg)->push_back(line);
    };
    params_.log_arg = &lines;
    buffer b(MiB), other(4 * KiB);
    std::memset(b.data(), 9, b.size());
    EXPECT_EQ(deliver(b.data() + 16, 64 * KiB, 1).reason, ZC_REASON_NONE);
    if (!open_device("vfio/vfio"))
        GTEST_SKIP() << kMayNot;
    EXPECT_EQ(deliver(b.data() + 16, 64 * KiB, 1).reason, ZC_REASON_NONE) << "holds nothing yet";
    /* As if VFIO had been given memory. */
    if (syscall(SYS_mlock, other.data(), other.size()) != 0)
        GTEST_SKIP() << "may not lock memory here";
    for (unsigned i = 0; i < 3; i++) {
        zc_delivery_t how = deliver(b.data() + 16, 64 * KiB, i);
        EXPECT_EQ(how.reason, ZC_REASON_DEVICE) << zc_reason_name(how.reason);
        EXPECT_EQ(how.bytes_rebound, 0u);
    }
    EXPECT_EQ(zc_eligible(zc(), b.data(), MiB), ZC_REASON_DEVICE);
    EXPECT_EQ(stats().copied_by_reason[ZC_REASON_DEVICE], 3u);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NE(lines[0].find("device"), std::string::npos) << lines[0];
    EXPECT_NE(lines[0].find("/vfio/vfio"), std::string::npos) << lines[0];
}

TEST_F(DriversTest, UnlessTheUserKnowsBetter)
{
    params_.flags |= ZC_FLAG_ALLOW_DEVICES;
    if (!open_device("nvidiactl"))
        GTEST_SKIP() << kMayNot;
    buffer b(MiB);
    EXPECT_EQ(deliver(b.data() + 16, 64 * KiB, 1).reason, ZC_REASON_NONE);
    EXPECT_EQ(zc_eligible(zc(), b.data(), MiB), 0);
}

TEST_F(DriversTest, TheModuleSeesPinsButNoReferences)
{
    fake_device fake;
    params_.means = 1u << ZC_MEANS_COPY | 1u << ZC_MEANS_KMOD;
    params_.flags = 0;
    use_costs({.size = sizeof(zc_costs_t),
               .copy_ns_fixed = 100,
               .copy_ns_per_byte = 1,
               .copy_ns_per_byte_long = 1,
               .mremap_ns_fixed = 0,
               .mremap_ns_per_page = 0,
               .mremap_ns_per_2m = 0,
               .kmod_ns_fixed = 100,
               .kmod_ns_per_page = 1,
               .kmod_ns_per_2m = 1});
    if (!open_device("nvidia0"))
        GTEST_SKIP() << kMayNot;
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    EXPECT_EQ(deliver(b.data() + 16, 64 * KiB, 1).means, ZC_MEANS_KMOD);

    ASSERT_TRUE(open_device("knem"));
    std::filesystem::copy_file(ZC_TEST_LIBRARY, folder_ + "/libuct_knem.so");
    void *loaded = dlopen((folder_ + "/libuct_knem.so").c_str(), RTLD_NOW);
    ASSERT_NE(loaded, nullptr) << dlerror();
    zc_delivery_t how = deliver(b.data() + 16, 64 * KiB, 2);
    EXPECT_EQ(how.reason, ZC_REASON_DEVICE) << zc_reason_name(how.reason);
    EXPECT_EQ(how.means, ZC_MEANS_COPY);
    dlclose(loaded);
}
