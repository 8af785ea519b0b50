package config

import (
	"strings"

	"github.com/gradfusion/gradfusion/internal/spelling"
)

// foreign answers keys of other systems with what to write here, or "".
func foreign(key string) string {
	key = strings.TrimPrefix(strings.ToLower(strings.ReplaceAll(key, "-", "_")), "hccl_")
	for _, row := range foreignKeys() {
		for name := range strings.FieldsSeq(row.names) {
			if name == key {
				return row.instead
			}
		}
	}
	return ""
}

// foreignNearly is foreign for long keys that are misspelt by a letter.
func foreignNearly(key string) string {
	for _, row := range foreignKeys() {
		for name := range strings.FieldsSeq(row.names) {
			if len(name) > 7 && spelling.Distance(name, key) == 1 {
				return row.instead
			}
		}
	}
	return ""
}

func foreignKeys() []struct{ names, instead string } {
	return []struct{ names, instead string }{
		{"channels channel channel_num max_channels max_channel_num num_channels", "there are no channels here; several sockets per peer come from collective.sockets_per_peer"},
		{"rdma_batch batch_size_rdma", "messages are not batched by count here; fusion.threshold_mb joins gradients into larger messages"},
		{"rdma rdma_enable use_rdma rdma_tc rdma_sl rdma_timeout rdma_retry_cnt", "the CPU backend uses shared memory and TCP; the Ascend backend reads the HCCL_RDMA_ variables of its library"},
		{"blocking blocking_mode blocking_wait non_blocking async_op", "calls never block here; fusion.overlap decides whether they run beside the backward pass"},
		{"hccs_port hccs_ports hccs", "HCCS links are found by the hardware and have no setting; ports of TCP connections are collective.ports"},
		{"bind binds bind_cpu cpu_bind numa_bind", "launch.bind_cores binds processes to cores; the rank table's device_id or LOCAL_RANK binds ranks to devices"},
		{"nic nics peer_nics socket_ifname ifname interfaces", "write collective.interface"},
		{"server_port base_port if_base_port port port_range", "write collective.ports"},
		{"timeout_sec timeout_s connect_timeout exec_timeout", "write collective.timeout with its unit, such as 60s"},
		{"retry_count retries retry_cnt", "write collective.retry"},
		{"buffsize buff_size buffer_size buffer", "write collective.buffer_mb"},
		{"message_size msg_size chunk_size", "write collective.segment"},
		{"sockets socket_num num_sockets sockets_per_rank", "write collective.sockets_per_peer"},
		{"algo hccl_algo", "write collective.algorithm"},
		{"compression compress gradient_compression compression_type", "write fusion.wire: f16, bf16, int8, int4, topk or powersgd"},
		{"data_type dtype comm_dtype", "gradients are float32 here; their format on the wire is fusion.wire"},
		{"fusion_threshold bucket_cap_mb bucket_size bucket_size_mb", "write fusion.threshold_mb"},
		{"hierarchical topology topology_aware", "write collective.algorithm: hierarchical; the hosts are found by themselves or come from collective.rank_table"},
		{"accumulation_steps gradient_accumulation gradient_accumulation_steps accumulate_steps grad_accum", "write train.accumulate"},
		{"opt_level amp_level", "write amp.level"},
		{"pipeline_stages stages num_stages", "write parallel.pipeline"},
		{"n_layer n_layers num_layers", "write model.layers"},
		{"n_head n_heads num_heads", "write model.heads"},
		{"n_embd d_model hidden_size", "write model.width"},
		{"block_size seq_len sequence_length context_length", "write model.context"},
		{"vocab_size", "the vocabulary is that of the data; of synthetic-text it is data.vocabulary"},
		{"learning_rate", "write optim.lr"},
		{"batch_size global_batch", "write data.batch, the samples of one optimizer step over all ranks"},
		{"num_epochs max_epochs", "write train.epochs"},
		{"max_steps num_steps", "write train.steps"},
		{"world_size num_processes nprocs processes", "write launch.nproc"},
		{"log_level logging profiling", "logs go to stderr; observe.log_every and observe.trace say how much is kept"},
		{"token secret", "the job's secret is the environment variable GRADFUSION_TOKEN and no key"},
	}
}
