// Calibrations on disk, so that a machine is measured once and not at every start.
//
// Keeps one small text file a machine, in a folder of the user's: $HINDSIGHT_CACHE_DIR, else
// $XDG_CACHE_HOME/hindsight, else $HOME/.cache/hindsight. Where none of these is set, nothing is read or
// written. The file's name is a hash of the machine's key (processor, microcode, kernel, hypervisor), and the
// key itself stands in it. So a home that several machines share serves them all, and an update measures
// anew.
//
// A file is hostile until proven otherwise. It must be a regular file of this user's that nobody else may
// write. It must be of bounded size and complete, with every field once and every number plausible. One that
// is not is ignored with one sentence, and replaced by the next measurement. Its numbers only tune: no
// content can change what a program computes.
//
// Writing is atomic: a temporary file of its own in the same folder, renamed over the old one. Processes that
// start together measure each for itself; the last one's figures stay.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "feedback/lwp/calibration/calibration.h"

namespace hindsight::lwp {

// The folder, as the environment says; empty: nothing is to be kept. A process with raised privileges
// (AT_SECURE) has none.
std::string calibration_folder();

// What a calibration depends on, one line of text.
std::string machine_key();

std::string format_calibration(const Calibration& calibration, const std::string& key);
// kUsage with the defect. `name` is for messages.
Result<Calibration> parse_calibration(const std::string& text, const std::string& key,
                                      const std::string& name);

std::string calibration_path(const std::string& folder, const std::string& key);

// Empty: there is no such file. kUsage: there is, and it is ignored because of this.
Result<std::optional<Calibration>> load_calibration(const std::string& folder, const std::string& key);
// Creates the folder (for its owner alone) where it is missing. kResource.
Status store_calibration(const std::string& folder, const std::string& key, const Calibration& calibration);

// What this machine's figures are and where they came from.
struct MachineCalibration {
  Calibration values;
  bool measured = false;  // now; else taken from the file
  std::string file;       // where they are kept; empty: nowhere
  std::string note;       // what went wrong on the way, one sentence; may be empty
};

// From the file only; fast. Empty: there is none that can be used; `note` gets the reason if it was refused.
std::optional<MachineCalibration> known_calibration(std::string& note);
// From the file, or measured now and kept. `anew`: measured in any case. `stop` as for calibrate().
Result<MachineCalibration> machine_calibration(bool anew, const std::function<bool()>& stop = {});

}  // namespace hindsight::lwp
