// A CUDA device that does nothing, for a PyTorch built without CUDA. Tensors without data may then stand on "cuda:0",
// and autograd, autocast and the dispatcher treat them as they treat CUDA tensors. There is one device, one stream,
// and nothing ever waits.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace neurarch {

const c10::Device only{c10::DeviceType::CUDA, 0};
const c10::Stream ready{c10::Stream::DEFAULT, only};

// PyTorch's own guard without effects answers with device -1, which autograd takes for no device.
struct IdleGuard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  c10::Device getDevice() const override { return only; }
  c10::Device exchangeDevice(c10::Device) const override { return only; }
  c10::Stream getStream(c10::Device) const noexcept override { return ready; }
  c10::Stream getDefaultStream(c10::Device) const override { return ready; }
  c10::Stream getNewStream(c10::Device, int) const override { return ready; }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return ready; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, IdleGuard)

// Autograd asks whether there is an accelerator, and how many.
struct IdleHooks final : at::CUDAHooksInterface {
  explicit IdleHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return 1; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex current_device() const override { return 0; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
};

}  // namespace neurarch

// The registry's macros look their names up in at::.
namespace at {
using neurarch::IdleHooks;
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", IdleHooks)
}  // namespace at
