package launch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type variables = map[string]string

func TestFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		name string
		env  variables
		want Place
	}{
		{
			"launcher",
			variables{"GRADFUSION_RANK": "1", "GRADFUSION_WORLD_SIZE": "2", "GRADFUSION_LOCAL_RANK": "1", "GRADFUSION_LOCAL_WORLD_SIZE": "2",
				"GRADFUSION_RENDEZVOUS": "127.0.0.1:4000", "GRADFUSION_JOB": "j", "GRADFUSION_TOKEN": "t", "GRADFUSION_PARENT_FD": "3", "RANK": "0", "WORLD_SIZE": "9"},
			Place{Source: "launcher", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Host: "127.0.0.1", Port: 4000, Job: "j", Token: "t", parent: 3},
		},
		{
			"torchrun",
			variables{"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "node0", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "run"},
			Place{Source: "torchrun", Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4, Host: "node0", Port: 29500, Job: "run"},
		},
		{
			"by hand",
			variables{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "::1", "MASTER_PORT": "29500"},
			Place{Source: "torchrun", Rank: 0, Size: 2, LocalSize: 1, Host: "::1", Port: 29500},
		},
		{
			"an address in brackets",
			variables{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "[::1]", "MASTER_PORT": "29500"},
			Place{Source: "torchrun", Rank: 0, Size: 2, LocalSize: 1, Host: "::1", Port: 29500},
		},
		{
			"torchrun whose port is taken by its agent",
			variables{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1", "GRADFUSION_RENDEZVOUS": "[::1]:7"},
			Place{Source: "torchrun", Size: 2, LocalSize: 1, Host: "::1", Port: 7},
		},
		{
			"torchrun under srun",
			variables{"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "n0", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "x",
				"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0"},
			Place{Source: "torchrun", Rank: 3, Size: 4, LocalRank: 1, LocalSize: 2, Host: "n0", Port: 1, Job: "x"},
		},
		{
			"kubernetes operator",
			variables{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "job-master-0", "MASTER_PORT": "23456"},
			Place{Source: "kubernetes", Rank: 1, Size: 3, LocalSize: 1, Host: "job-master-0", Port: 23456},
		},
		{
			"kubernetes indexed job",
			variables{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "2", "WORLD_SIZE": "3", "MASTER_ADDR": "job-0.job", "MASTER_PORT": "23456"},
			Place{Source: "kubernetes", Rank: 2, Size: 3, LocalSize: 1, Host: "job-0.job", Port: 23456},
		},
		{
			"Open MPI on one host",
			variables{"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "4", "PMIX_NAMESPACE": "3912040449"},
			Place{Source: "mpirun", Rank: 2, Size: 4, LocalRank: 2, LocalSize: 4, Host: "127.0.0.1", Port: 29933, Job: "3912040449"},
		},
		{
			"Open MPI on several, started inside a Slurm task",
			variables{"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
				"MASTER_ADDR": "n1", "MASTER_PORT": "5000", "SLURM_PROCID": "0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"},
			Place{Source: "mpirun", Rank: 2, Size: 4, LocalRank: 0, LocalSize: 2, Host: "n1", Port: 5000},
		},
		{
			"MPICH",
			variables{"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", "MASTER_PORT": "5000"},
			Place{Source: "mpirun", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Host: "127.0.0.1", Port: 5000},
		},
		{
			"mpirun whose script exports RANK",
			variables{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
			Place{Source: "torchrun", Rank: 1, Size: 2, LocalSize: 1, Host: "a", Port: 1},
		},
		{
			"srun",
			variables{"SLURM_PROCID": "4", "SLURM_STEP_NUM_TASKS": "5", "SLURM_LOCALID": "0", "SLURM_NODEID": "2", "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
				"SLURM_STEP_ID": "3", "SLURM_JOB_ID": "77", "SLURM_STEP_NODELIST": "gpu[03-05]"},
			Place{Source: "srun", Rank: 4, Size: 5, LocalRank: 0, LocalSize: 1, Host: "gpu03", Port: 23862, Job: "slurm-77.3"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok, err := FromEnvironment(func(name string) string { return c.env[name] })
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, c.want, got)
		})
	}
}

func TestNotLaunched(t *testing.T) {
	for name, env := range map[string]variables{
		"nothing":                {},
		"token only":             {"GRADFUSION_TOKEN": "x"},
		"a setting":              {"GRADFUSION_SET_OPTIM_LR": "1"},
		"Slurm batch script":     {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "1"},
		"Slurm batch step":       {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_STEP_ID": "4294967291"},
		"Slurm step of one task": {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_ID": "0"},
		"indexed job on its own": {"KUBERNETES_SERVICE_HOST": "x", "JOB_COMPLETION_INDEX": "0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, ok, err := FromEnvironment(func(name string) string { return env[name] })
			require.NoError(t, err)
			require.False(t, ok)
		})
	}
}

func TestBadEnvironment(t *testing.T) {
	for _, c := range []struct {
		name string
		env  variables
		says []string
	}{
		{"rank only", variables{"RANK": "0"}, []string{"RANK is set", "not WORLD_SIZE, MASTER_ADDR, MASTER_PORT"}},
		{"no port", variables{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a"}, []string{"RANK, WORLD_SIZE, MASTER_ADDR are set", "not MASTER_PORT"}},
		{"address only", variables{"MASTER_ADDR": "a", "MASTER_PORT": "1"}, []string{"MASTER_ADDR, MASTER_PORT are set", "not RANK, WORLD_SIZE"}},
		{"rank out of range", variables{"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, []string{"rank 2 is not one of 2 ranks"}},
		{"no number", variables{"RANK": "one", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, []string{`RANK is "one"`}},
		{"negative", variables{"RANK": "0", "WORLD_SIZE": "-2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, []string{`WORLD_SIZE is "-2"`}},
		{"empty world", variables{"RANK": "0", "WORLD_SIZE": "0", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, []string{"world of 0 ranks"}},
		{"port", variables{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "70000"}, []string{"MASTER_PORT is 70000"}},
		{"port 0", variables{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "0"}, []string{"port 0", "1 to 65535"}},
		{"local rank", variables{"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, []string{"local rank 3 is not one of 2"}},
		{"more here than there are", variables{"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, []string{"4 ranks on this host of 2"}},
		{"launcher without address", variables{"GRADFUSION_RANK": "0", "GRADFUSION_WORLD_SIZE": "2"}, []string{"not GRADFUSION_RENDEZVOUS"}},
		{"rendezvous", variables{"GRADFUSION_RANK": "0", "GRADFUSION_WORLD_SIZE": "2", "GRADFUSION_RENDEZVOUS": "here"}, []string{`GRADFUSION_RENDEZVOUS is "here"`, "host:port"}},
		{"half of Open MPI", variables{"OMPI_COMM_WORLD_RANK": "0"}, []string{"not OMPI_COMM_WORLD_SIZE"}},
		{"Open MPI over hosts", variables{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, []string{"spans hosts", "MASTER_ADDR"}},
		{"MPICH without port", variables{"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}, []string{"set MASTER_PORT"}},
		{"RANK exported to all", variables{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
			[]string{"contradicts itself", "RANK=0 but OMPI_COMM_WORLD_RANK=1"}},
		{"tasks", variables{"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0", "SLURM_STEP_TASKS_PER_NODE": "x"}, []string{"SLURM_STEP_TASKS_PER_NODE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, ok, err := FromEnvironment(func(name string) string { return c.env[name] })
			require.False(t, ok)
			for _, s := range c.says {
				require.ErrorContains(t, err, s)
			}
		})
	}
}

func TestSlurmLists(t *testing.T) {
	for list, want := range map[string]string{
		"n1":                      "n1",
		"n1,n2":                   "n1",
		"gpu[03-05]":              "gpu03",
		"gpu[7,9-11],login":       "gpu7",
		"rack1-[2-3]-node":        "rack1-2-node",
		"a[1-2]b[3-4],c":          "a1b3",
		"":                        "",
		"node[001]":               "node001",
		"very-long.example,other": "very-long.example",
	} {
		require.Equal(t, want, firstNode(list), list)
	}
	for _, c := range []struct {
		text       string
		node, want int
	}{{"4", 0, 4}, {"2(x3),1", 0, 2}, {"2(x3),1", 2, 2}, {"2(x3),1", 3, 1}} {
		n, err := tasksOfNode(c.text, c.node)
		require.NoError(t, err)
		require.Equal(t, c.want, n)
	}
	for _, bad := range []string{"", "x", "2(x3", "2(xy)"} {
		_, err := tasksOfNode(bad, 0)
		require.Error(t, err, bad)
	}
	_, err := tasksOfNode("2", 1)
	require.Error(t, err)
}

func FuzzSlurm(f *testing.F) {
	f.Add("gpu[03-05,7]x[1],b", "2(x3),1", 1)
	f.Fuzz(func(t *testing.T, nodes, tasks string, node int) {
		_ = firstNode(nodes)
		_, _ = tasksOfNode(tasks, node)
	})
}
