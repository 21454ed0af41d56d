package simulator

// The stream is Constrained Baseline, every picture an IDR of one slice, every
// macroblock I_PCM: samples are written as they are, so there is neither
// prediction nor transform nor entropy coding to get wrong, and any decoder
// gives back exactly the picture that was drawn.

const (
	macroblock   = 16
	profileIDC   = 66
	profileFlags = 0xC0 // constraint_set0 and 1
	levelIDC     = 30   // its bit rate covers PCM at this size

	nalSPS = 0x67
	nalPPS = 0x68
	nalIDR = 0x65
)

// sequenceSet is the SPS for a size in whole macroblocks.
func sequenceSet(width, height int) []byte {
	var w bitWriter
	w.bits(profileIDC, 8)
	w.bits(profileFlags, 8)
	w.bits(levelIDC, 8)
	w.ue(0)                           // seq_parameter_set_id
	w.ue(0)                           // log2_max_frame_num_minus4
	w.ue(2)                           // pic_order_cnt_type: shown in the order of decoding
	w.ue(0)                           // max_num_ref_frames
	w.bit(0)                          // gaps_in_frame_num_value_allowed_flag
	w.ue(uint(width/macroblock) - 1)  // pic_width_in_mbs_minus1
	w.ue(uint(height/macroblock) - 1) // pic_height_in_map_units_minus1
	w.bit(1)                          // frame_mbs_only_flag
	w.bit(1)                          // direct_8x8_inference_flag
	w.bit(0)                          // frame_cropping_flag
	w.bit(0)                          // vui_parameters_present_flag
	return w.finish(nalSPS)
}

// pictureSet is the PPS.
func pictureSet() []byte {
	var w bitWriter
	w.ue(0)      // pic_parameter_set_id
	w.ue(0)      // seq_parameter_set_id
	w.bit(0)     // entropy_coding_mode_flag: CAVLC
	w.bit(0)     // bottom_field_pic_order_in_frame_present_flag
	w.ue(0)      // num_slice_groups_minus1
	w.ue(0)      // num_ref_idx_l0_default_active_minus1
	w.ue(0)      // num_ref_idx_l1_default_active_minus1
	w.bit(0)     // weighted_pred_flag
	w.bits(0, 2) // weighted_bipred_idc
	w.ue(0)      // pic_init_qp_minus26, signed: 0 has the same code
	w.ue(0)      // pic_init_qs_minus26
	w.ue(0)      // chroma_qp_index_offset
	w.bit(1)     // deblocking_filter_control_present_flag
	w.bit(0)     // constrained_intra_pred_flag
	w.bit(0)     // redundant_pic_cnt_present_flag
	return w.finish(nalPPS)
}

// picture holds 4:2:0 samples; chroma planes have half the size each way.
type picture struct {
	width, height int
	luma, cb, cr  []byte
}

func newPicture(width, height int) *picture {
	return &picture{
		width: width, height: height, luma: make([]byte, width*height),
		cb: make([]byte, width*height/4), cr: make([]byte, width*height/4),
	}
}

// slice codes the picture as the n-th one of a stream.
func (p *picture) slice(n int) []byte {
	w := bitWriter{buf: make([]byte, 0, len(p.luma)*3/2+len(p.luma)/16)}
	w.ue(0)           // first_mb_in_slice
	w.ue(7)           // slice_type: all macroblocks are I
	w.ue(0)           // pic_parameter_set_id
	w.bits(0, 4)      // frame_num
	w.ue(uint(n & 1)) // idr_pic_id, must differ between neighbours
	w.bit(0)          // no_output_of_prior_pics_flag
	w.bit(0)          // long_term_reference_flag
	w.ue(0)           // slice_qp_delta
	w.ue(1)           // disable_deblocking_filter_idc
	for y := 0; y < p.height; y += macroblock {
		for x := 0; x < p.width; x += macroblock {
			w.ue(25) // mb_type I_PCM
			w.align()
			block(&w, p.luma, p.width, x, y, macroblock)
			block(&w, p.cb, p.width/2, x/2, y/2, macroblock/2)
			block(&w, p.cr, p.width/2, x/2, y/2, macroblock/2)
		}
	}
	return w.finish(nalIDR)
}

func block(w *bitWriter, plane []byte, stride, x, y, size int) {
	for row := y; row < y+size; row++ {
		w.bytes(plane[row*stride+x : row*stride+x+size])
	}
}
