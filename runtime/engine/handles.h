// The classes that implement the public API's interfaces. Each is a light view of the inside. An EngineHandle
// owns code services and the tier manager, a ModuleHandle a module and its code. An InstanceHandle points
// into a store. Several handles of one instance are equal; what belongs to a store (its last trap) is in
// StoreState.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/trace.h"
#include "runtime/code/code_services.h"
#include "runtime/code/module_code.h"
#include "runtime/code/owner_process.h"
#include "runtime/code/record_feed.h"
#include "runtime/code/tiers.h"
#include "runtime/engine/guest_threads.h"
#include "runtime/engine/hindsight.h"
#include "runtime/exec/thread_hooks.h"
#include "runtime/instance/instance.h"
#include "runtime/instance/store.h"
#include "runtime/instance/store_use.h"

namespace hindsight {

// Looked up once, called often.
struct Instance::Function {
  jit::FuncRef* ref = nullptr;
  jit::InvokeFn invoke = nullptr;
  const wasm::FuncType* type = nullptr;  // canonical; its id is held by the instance
  bool ends_program = false;             // when it returns: _start
  bool takes_functions = false;          // a funcref among the parameters
  bool returns_exceptions = false;       // an exnref among the results
};

namespace rt {

class EngineHandle final : public Engine {
 public:
  static Result<std::shared_ptr<EngineHandle>> create(EngineConfig config, const TestKnobs& knobs);
  ~EngineHandle() override;

  Result<std::shared_ptr<const hindsight::Module>> load(std::span<const std::byte> bytes,
                                                        std::string name) override;
  Result<std::shared_ptr<const hindsight::Module>> load_file(const std::string& path) override;
  FeedbackReport feedback_report() const override;
  std::optional<ModelReport> model_report() const override;
  Status save_profile(const std::string& path) const override;
  void wait_for_compiles() override;
  const EngineConfig& config() const override { return config_; }

  CodeServices& code() { return *code_; }
  TierManager& tiers() { return *tiers_; }
  RecordFeed& feed() { return *feed_; }
  StoreServices store_services(std::shared_ptr<StoreBudget> budget);
  const OwnerProcess& owner() const { return owner_; }

 private:
  explicit EngineHandle(EngineConfig config) : config_(std::move(config)) {}
  EngineConfig config_;
  const OwnerProcess owner_;
  std::shared_ptr<RecordFeed> feed_;
  std::unique_ptr<TraceDirectory> trace_;  // outlives all code; null: code is not instrumented
  std::unique_ptr<CodeServices> code_;
  std::unique_ptr<TierManager> tiers_;
  std::unique_ptr<ThreadAttachments> attachments_ = std::make_unique<ThreadAttachments>();
};

class ModuleHandle final : public hindsight::Module {
 public:
  ModuleHandle(std::shared_ptr<EngineHandle> engine, std::shared_ptr<ModuleCode> code)
      : engine_(std::move(engine)), code_(std::move(code)) {}
  ~ModuleHandle() override {
    if (!engine_->owner().here()) leak(std::move(code_));
  }

  std::string name() const override { return wasm().name; }
  std::vector<ImportType> imports() const override;
  std::vector<ExportType> exports() const override;
  std::string content_hash_hex() const override;
  ModuleTools tools() const override;
  bool has_start_function() const override { return wasm().start.has_value(); }

  const wasm::Module& wasm() const { return *code_->module(); }
  const std::shared_ptr<ModuleCode>& code() const { return code_; }
  const EngineHandle* engine() const { return engine_.get(); }

 private:
  std::shared_ptr<EngineHandle> engine_;  // outlives code_
  std::shared_ptr<ModuleCode> code_;
};

// What the handles of one store share.
struct StoreState {
  StoreState() = default;
  StoreState(const StoreState&) = delete;
  StoreState& operator=(const StoreState&) = delete;
  ~StoreState() {
    if (!engine->owner().here()) {
      leak(std::move(threads));
      leak(std::move(store));
    } else if (threads != nullptr) {
      threads->finish();
    }
  }
  std::shared_ptr<EngineHandle> engine;  // outlives the store
  std::shared_ptr<Store> store;
  std::shared_ptr<GuestThreads> threads;  // of a program that may spawn some; else null
  std::optional<Trap> last_trap;
  std::optional<uint32_t> exit_code;
  std::map<jit::FuncRef*, std::unique_ptr<hindsight::Instance::Function>> functions;
  // Handles that went while a call that they made runs have left their reference here; the call drops it.
  std::shared_ptr<StoreState> until_call_ends;
  uint32_t calls = 0;  // that run now, one inside the other
};

class InstanceHandle final : public hindsight::Instance {
 public:
  InstanceHandle(std::shared_ptr<StoreState> state, rt::Instance& instance)
      : state_(std::move(state)), instance_(instance) {}
  ~InstanceHandle() override {
    // The thread that runs the store is the one that may let go of its handles then.
    if (state_.use_count() == 0) return;  // a host function's view of its caller keeps nothing
    StoreState& state = *state_;
    const StoreUse use(*state.store);
    if (use && state.calls != 0) state.until_call_ends = std::move(state_);
  }

  Result<std::vector<Value>> call(std::string_view export_name, std::span<const Value> args) override;
  Result<FunctionType> function_type(std::string_view export_name) const override;
  Result<std::span<std::byte>> memory(std::string_view export_name) override;
  Result<Value> global(std::string_view export_name) const override;
  Status set_global(std::string_view export_name, const Value& value) override;
  void interrupt() override;
  void clear_interrupt() override;
  void set_timeout(std::chrono::milliseconds limit) override;
  const Trap* last_trap() const override { return state_->last_trap ? &*state_->last_trap : nullptr; }
  std::optional<uint32_t> exit_code() const override { return state_->exit_code; }
  std::shared_ptr<const hindsight::Module> module() const override;
  Result<Function*> find_function(std::string_view export_name) override;
  Status call_raw(Function* function, std::span<uint64_t> slots) override;

  const std::shared_ptr<StoreState>& state() const { return state_; }
  rt::Instance& inside() const { return instance_; }

 private:
  Result<jit::FuncRef*> find_ref(std::string_view export_name) const;
  template <typename T>
  Result<T> find(std::string_view export_name, const char* what) const;

  std::shared_ptr<StoreState> state_;
  rt::Instance& instance_;
};

// Public form of the store's trap; empty if there is none or it is an exit.
Trap to_public(const GuestTrap& trap);
// After an entry that ended with an error: fills last_trap and exit_code.
void note_outcome(StoreState& state, const Status& status);

}  // namespace rt
}  // namespace hindsight
