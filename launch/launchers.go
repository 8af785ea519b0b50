package launch

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// torchrun reads RANK and the like. Kubernetes operators set the same names,
// without a local rank; its indexed jobs set JOB_COMPLETION_INDEX in place of
// RANK.
func (r *reader) torchrun() Place {
	p := Place{Source: "torchrun"}
	rank := "RANK"
	if r.env("KUBERNETES_SERVICE_HOST") != "" && r.env("LOCAL_RANK") == "" {
		p.Source = "kubernetes"
		if r.env("RANK") == "" && r.env("JOB_COMPLETION_INDEX") != "" {
			rank = "JOB_COMPLETION_INDEX"
		}
	}
	if r.env(rendezvousVariable) != "" {
		r.need(p.Source, rank, "WORLD_SIZE")
	} else {
		r.need(p.Source, rank, "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
	}
	p.Rank = r.number(rank, 0)
	p.Size = r.number("WORLD_SIZE", 0)
	p.LocalRank = r.number("LOCAL_RANK", 0)
	p.LocalSize = r.number("LOCAL_WORLD_SIZE", p.LocalRank+1)
	p.Host, p.Port = r.masterHost(), r.port("MASTER_PORT")
	p.Job = r.env("TORCHELASTIC_RUN_ID")
	return p
}

// agree looks for RANK exported to all processes of an mpirun or srun alike:
// worlds of one size in which the process has two ranks. torchrun under them is
// none of that: its worlds differ, and it says who it is.
func (r *reader) agree(p Place) {
	if r.env("TORCHELASTIC_RUN_ID") != "" {
		return
	}
	for _, other := range [][2]string{
		{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
		{"PMI_RANK", "PMI_SIZE"},
		{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
	} {
		if !r.any(other[0]) || !r.any(other[1]) {
			continue
		}
		if rank, size := r.number(other[0], 0), r.number(other[1], 0); size == p.Size && rank != p.Rank {
			r.fail("environment contradicts itself: RANK=%d but %s=%d, both of %d ranks; unset RANK and WORLD_SIZE, or export them per process",
				p.Rank, other[0], rank, size)
		}
	}
}

// masterHost is MASTER_ADDR, an IPv6 address without the brackets that it may
// be written in.
func (r *reader) masterHost() string {
	return strings.TrimSuffix(strings.TrimPrefix(r.env("MASTER_ADDR"), "["), "]")
}

func (r *reader) mpi() bool {
	return r.any("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE") || r.env("PMI_RANK") != "" && r.env("PMI_SIZE") != ""
}

// mpirun reads the variables of Open MPI, or of MPICH's and Intel's hydra.
func (r *reader) mpirun() Place {
	p := Place{Source: "mpirun"}
	if r.any("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE") {
		r.need(p.Source, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
		p.Rank = r.number("OMPI_COMM_WORLD_RANK", 0)
		p.Size = r.number("OMPI_COMM_WORLD_SIZE", 0)
		p.LocalRank = r.number("OMPI_COMM_WORLD_LOCAL_RANK", 0)
		p.LocalSize = r.number("OMPI_COMM_WORLD_LOCAL_SIZE", p.LocalRank+1)
		p.Job = first(r.env("PMIX_NAMESPACE"), r.env("OMPI_MCA_ess_base_jobid"))
	} else {
		p.Rank = r.number("PMI_RANK", 0)
		p.Size = r.number("PMI_SIZE", 0)
		p.LocalRank = r.number("MPI_LOCALRANKID", 0)
		p.LocalSize = r.number("MPI_LOCALNRANKS", p.LocalRank+1)
		p.Job = r.env("PMI_JOBID")
	}
	r.master(&p, "")
	return p
}

// slurm reports whether srun has started this process as one task of several. A
// batch script, which has SLURM_PROCID too, is not such a task.
func (r *reader) slurm() bool {
	step, err := strconv.ParseUint(r.env("SLURM_STEP_ID"), 10, 64)
	const reserved = 0xfffffff0 // steps that are no srun: batch, interactive
	return err == nil && step < reserved && r.env("SLURM_PROCID") != "" && r.env("SLURM_STEP_NUM_TASKS") != "1"
}

func (r *reader) srun() Place {
	p := Place{Source: "srun"}
	size := "SLURM_STEP_NUM_TASKS"
	if r.env(size) == "" {
		size = "SLURM_NTASKS"
	}
	r.need(p.Source, "SLURM_PROCID", size)
	p.Rank = r.number("SLURM_PROCID", 0)
	p.Size = r.number(size, 0)
	p.LocalRank = r.number("SLURM_LOCALID", 0)
	node := r.number("SLURM_NODEID", 0)
	tasks := first(r.env("SLURM_STEP_TASKS_PER_NODE"), r.env("SLURM_TASKS_PER_NODE"))
	p.LocalSize = p.LocalRank + 1
	if tasks != "" {
		n, err := tasksOfNode(tasks, node)
		if err != nil {
			r.fail("environment: SLURM_STEP_TASKS_PER_NODE is %q: %v", tasks, err)
		}
		p.LocalSize = n
	}
	p.Job = fmt.Sprintf("slurm-%s.%s", r.env("SLURM_JOB_ID"), r.env("SLURM_STEP_ID"))
	nodes := first(r.env("SLURM_STEP_NODELIST"), r.env("SLURM_JOB_NODELIST"), r.env("SLURM_NODELIST"))
	r.master(&p, firstNode(nodes))
	return p
}

// master finds the store's address for launchers that name none: MASTER_ADDR
// and MASTER_PORT where given, else host (or this one when all ranks are here)
// and a port that follows from the job's name.
func (r *reader) master(p *Place, host string) {
	if r.env(rendezvousVariable) != "" {
		return
	}
	p.Host, p.Port = r.masterHost(), r.port("MASTER_PORT")
	if p.Host == "" {
		p.Host = host
		if p.LocalSize == p.Size {
			p.Host = "127.0.0.1"
		}
	}
	if p.Host == "" {
		r.fail("%s environment: the job spans hosts and nothing names rank 0's; set MASTER_ADDR and MASTER_PORT, or %s=host:port, for all ranks", p.Source, rendezvousVariable)
	}
	if p.Port == 0 {
		if p.Job == "" {
			r.fail("%s environment: nothing names the store's port; set MASTER_PORT for all ranks", p.Source)
		}
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(p.Job))
		p.Port = 20000 + int(hash.Sum32()%10000) // below the range that systems hand out
	}
}

func first(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// tasksOfNode reads Slurm's "2(x3),1": 2 tasks on each of 3 nodes, then 1.
func tasksOfNode(text string, node int) (int, error) {
	at := 0
	for part := range strings.SplitSeq(text, ",") {
		count, times := part, 1
		if i := strings.Index(part, "(x"); i >= 0 && strings.HasSuffix(part, ")") {
			n, err := strconv.Atoi(part[i+2 : len(part)-1])
			if err != nil {
				return 0, err
			}
			count, times = part[:i], n
		}
		n, err := strconv.Atoi(count)
		if err != nil {
			return 0, err
		}
		if at += times; node < at {
			return n, nil
		}
	}
	return 0, fmt.Errorf("it has no node %d", node)
}

// firstNode is the first name of Slurm's "gpu[03-05,9],login": gpu03.
func firstNode(list string) string {
	open := strings.IndexAny(list, "[,")
	if open < 0 {
		return list
	}
	if list[open] == ',' {
		return list[:open]
	}
	inside, after, _ := strings.Cut(list[open+1:], "]")
	number := inside
	if i := strings.IndexAny(inside, "-,"); i >= 0 {
		number = inside[:i]
	}
	return list[:open] + number + firstNode(after)
}
