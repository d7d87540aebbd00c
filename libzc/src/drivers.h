/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_DRIVERS_H_INCLUDED
#define ZC_DRIVERS_H_INCLUDED

#include <array>
#include <atomic>
#include <mutex>
#include <string_view>
#include <sys/types.h>

namespace zc {

/** How a driver holds the pages of its clients, ascending by what notices it. */
enum class hold {
    none,
    pin,       /* by FOLL_PIN: the module sees it page by page, mremap(2) sees nothing */
    reference, /* by a mere reference, which cannot be seen */
};

/** What the driver behind a file does: @path as /proc has it, @device its number, if
 *  it is a character device, else 0. */
hold hold_of_file(std::string_view path, dev_t device);

/** The like for the name of a mapping. */
hold hold_of_mapping(std::string_view name);

/**
 * drivers - those that may hold pages of this process without counting them in VmPin
 *
 *     driver      device           holds by            counts in
 *     NVIDIA's    /dev/nvidia*     pin (old: reference) nothing
 *     VFIO        /dev/vfio/       pin                 VmLck, without locking
 *     KNEM        /dev/knem        reference           nothing
 *
 * There is no notice when a process opens a device, so each query looks at what is open
 * now; but there is nothing to look for where the machine has none of these drivers, or
 * only VFIO and VmLck is zero. That has to be found out at each delivery, with caches that
 * hold something else, so the cheapest sufficient answer is asked for first:
 *
 *     no code from outside the kernel's tree was ever loaded:     no NVIDIA, no KNEM
 *     else: no driver has a folder in /proc/driver:               no NVIDIA
 *           /proc/misc does not name it:                          no KNEM, no VFIO
 *
 * A driver that has been found stays found: what it holds may outlive its file descriptor.
 *
 * Drivers that follow changes of the address space (MMU notifiers: amdgpu, i915, KVM,
 * XPMEM) or count in VmPin (InfiniBand, io_uring) are not meant.
 *
 * Any thread.
 */
class drivers {
  public:
    drivers();
    ~drivers();
    drivers(const drivers &) = delete;
    drivers &operator=(const drivers &) = delete;

    /** The worst there is, as of now. @locked: VmLck is not zero, or not known. */
    hold ask(bool locked = true);
    /** The worst there was when asked last, or when a library was loaded last: it costs
     *  no system call. */
    hold ask_cheaply();
    /** For people: the file that gave it away; "" if none has. */
    std::array<char, 128> culprit() const;
    /** Has the machine any such driver? */
    bool present() const;

  private:
    bool may_hold(bool locked);
    bool outside_code();
    bool nvidia_loaded() const;
    bool listed(std::string_view name, std::string_view other = {}) const;
    bool look_at_mappings();
    bool look_at_files();
    bool look_again_if_libraries_changed();
    void found(hold how, std::string_view what);

    const int misc_;
    const int taint_;
    const int folder_; /* that NVIDIA's driver has its own in */
    /* Code from outside the kernel's tree was loaded: that is never undone. */
    std::atomic<bool> outside_;
    std::atomic<hold> known_{hold::none};
    std::atomic<unsigned long long> loads_{0}; /* of libraries, when the mappings were read */
    mutable std::mutex mutex_;
    std::mutex looking_; /* at descriptors, which another look opens and closes */
    std::array<char, 128> culprit_{};
};

} // namespace zc

#endif /* ZC_DRIVERS_H_INCLUDED */
