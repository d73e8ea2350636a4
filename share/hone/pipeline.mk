# From a trained model to one that may be shipped: inspect, export, prune, quantize, gate. GNU make.
#
#     make -f .../share/hone/pipeline.mk MODEL=model.onnx CALIB=train.npz TEST=test.npz
#
# or in a Makefile of your own: set the variables, then include this file; its targets all begin with hone-.
#
#   MODEL     the model; a preprocess.conf beside it counts
#   CALIB     samples to prune and quantize with: what --calib takes
#   TEST      samples that had no part in it, which the gate compares on; with labels it counts right answers
#   OUT       folder of what is made (default: build-model)
#   FLOPS     part of the operations that pruning leaves, such as 0.5x; empty: channels stay
#   MAX_DROP  largest loss of the metric in each step (default: 1%)
#   MIN_SQNR  dB that the last model's outputs have to keep against MODEL (default: 15)
#   SLOWER    how much slower than MODEL, or than BASELINE, the last model may be (default: 5%)
#   BASELINE  report on OUT's last model on this machine to compare with, too, which the target hone-baseline makes; empty: none
#   THREADS   of all steps (default: as each tool chooses)
#
# A step whose guard says no (status 3) or that cannot tell (5) writes no model: the one before it goes on, and this is said.
# The gate's status is make's: make fails where a model is slower, differs too much, or that could not be told.

OUT ?= build-model
MAX_DROP ?= 1%
MIN_SQNR ?= 15
SLOWER ?= 5%
HONE ?= $(if $(wildcard $(HONE_BIN)hone-run),$(HONE_BIN))
# the tools of the installation that this file is of, else those on PATH
HONE_BIN := $(dir $(lastword $(MAKEFILE_LIST)))../../bin/

HONE_COMMON = $(if $(THREADS),-t $(THREADS)) --no-progress
# of the model, not of what is made elsewhere: how pictures and sound become its inputs
hone_how = $(addprefix --preprocess ,$(wildcard $(dir $(MODEL))preprocess.conf))
hone_data = $(if $(TEST),--data $(TEST) $(hone_how))

# $(call hone_step,COMMAND,MODEL BEFORE,MODEL MADE)
define hone_step
@mkdir -p $(OUT)
$(HONE)$(1) $(2) -o $(3) $(HONE_COMMON) || case $$? in \
	3 | 5) echo "$(notdir $(3)): not made, $(notdir $(2)) goes on" >&2; cp $(2) $(3) ;; \
	*) exit 1 ;; \
esac
endef

.PHONY: hone-all hone-inspect hone-export hone-prune hone-quantize hone-gate hone-baseline hone-clean
hone-all: hone-gate
hone-inspect: $(OUT)/inspect.json
hone-export: $(OUT)/exported.onnx
hone-prune: $(OUT)/pruned.onnx
hone-quantize: $(OUT)/quantized.onnx
.DELETE_ON_ERROR:

ifeq ($(MODEL),)
$(error MODEL is not set: the model to start from)
endif

$(OUT)/inspect.json: $(MODEL)
	@mkdir -p $(OUT)
	$(HONE)hone-inspect $(MODEL) --json=$@

$(OUT)/exported.onnx: $(MODEL)
	$(call hone_step,hone-export $(hone_data),$(MODEL),$@)

$(OUT)/pruned.onnx: $(OUT)/exported.onnx
ifeq ($(FLOPS),)
	cp $< $@
else
	$(call hone_step,hone-prune --calib $(CALIB) $(hone_how) --flops $(FLOPS) --max-drop $(MAX_DROP),$<,$@)
endif

$(OUT)/quantized.onnx: $(OUT)/pruned.onnx
	$(call hone_step,hone-quantize --calib $(CALIB) $(hone_how) --max-drop $(MAX_DROP),$<,$@)

# Not a file: what it measures is of today.
hone-gate: $(OUT)/inspect.json $(OUT)/quantized.onnx
	$(HONE)hone-diff $(MODEL) $(OUT)/quantized.onnx $(hone_data) --min-sqnr $(MIN_SQNR) $(HONE_COMMON)
	$(HONE)hone-bench $(MODEL) $(OUT)/quantized.onnx --fail-if-slower $(SLOWER) --json=$(OUT)/bench.json $(HONE_COMMON)
	$(if $(BASELINE),$(HONE)hone-bench $(OUT)/quantized.onnx --baseline $(BASELINE) --fail-if-slower $(SLOWER) $(HONE_COMMON))

# Kept for later gates: other versions of hone, of libraries and of the system compute the same model.
hone-baseline: $(OUT)/quantized.onnx
	$(if $(BASELINE),,$(error BASELINE is not set: the file to write))
	$(HONE)hone-bench $< --instances 12 --json=$(BASELINE) $(HONE_COMMON)

hone-clean:
	rm -rf $(OUT)
